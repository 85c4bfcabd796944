"""A runtime with only the code that programs use, and what a program will need, without torch.

* `uses.py` reads from programs which operators, dtypes, dim orders, backends and engine operators
  they use.
* `sources.py` finds the C++ sources, and those of them that an operator needs.
* `selection.py` writes what a build is made from: a table of kernels, a header that says what is
  kept, and lists of sources for CMake. `rushlight_add_library` in cmake/RushlightSelect.cmake calls
  it, as `python -m rushlight.selective`.
* `build.py` builds it: static library, header, CMake package and a report of its size.
"""
