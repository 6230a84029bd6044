"""A small web service: no framework, one compiled extension, one program of the OS."""
