/* fastsum.total(list of numbers): their sum. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *total(PyObject *self, PyObject *argument) {
  PyObject *items = PySequence_Fast(argument, "wanted a sequence of numbers");
  if (items == NULL) return NULL;
  double sum = 0.0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++) {
    sum += PyFloat_AsDouble(PySequence_Fast_GET_ITEM(items, i));
    if (PyErr_Occurred()) {
      Py_DECREF(items);
      return NULL;
    }
  }
  Py_DECREF(items);
  return PyFloat_FromDouble(sum);
}

static PyMethodDef methods[] = {
    {"total", total, METH_O, "The sum of a sequence of numbers."}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fastsum", "A sum in C.", -1, methods};

PyMODINIT_FUNC PyInit_fastsum(void) { return PyModule_Create(&module); }
