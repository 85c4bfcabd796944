"""C++ that binds kernels to operators, made from the YAML files of ExecuTorch's custom kernels.

A `functions.yaml` or `custom_ops.yaml` names operators and the C++ functions that compute them.
:mod:`.gen` writes the sources that register these functions; :mod:`.tools` has the programs that
say which operators of these are built. Their command lines are those of ExecuTorch::

    python -m rushlight.kernel_codegen.tools.gen_oplist --output_path=OUT.yaml --root_ops=OPERATORS
    python -m rushlight.kernel_codegen.gen --functions-yaml-path=FILE --install-dir=FOLDER

Schemas are read by torchgen, which is installed with torch.
"""
