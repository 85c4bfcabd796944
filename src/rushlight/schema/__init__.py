"""The file formats as dataclasses; the modules beside this one are generated from schema/*.fbs."""
