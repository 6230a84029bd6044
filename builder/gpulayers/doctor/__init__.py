"""What this machine has of all that building, scanning and trying images needs."""

from gpulayers.doctor.examine import data_folder, examine, examine_tools, format_json, is_fit
from gpulayers.doctor.model import Machine, Part

__all__ = ["Machine", "Part", "data_folder", "examine", "examine_tools", "format_json", "is_fit"]
