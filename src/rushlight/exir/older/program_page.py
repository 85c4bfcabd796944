"""A page of a program's operators and constants, as ExecuTorch's sources make one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from rushlight.exir.interpreter import Interpreter
from rushlight.schema import program as schema


def get_header(name: str) -> ElementTree.Element:
    """A heading."""
    heading = ElementTree.Element("h2")
    ElementTree.SubElement(heading, "span").text = name
    return heading


def iterable_to_html(s: Iterable[Any]) -> ElementTree.Element:
    """The texts of some values, one in each line."""
    block = ElementTree.Element("span")
    lines = ElementTree.SubElement(block, "p")
    for one in s:
        ElementTree.SubElement(lines, "div").text = str(one)
    return block


def gen_html(program: schema.Program) -> bytes:
    """The page of a program with one method; `rushlight inspect --html` makes one of a file.

    Args:
        program: of the schema.
    """
    read = Interpreter(program)
    page = ElementTree.Element("html")
    head = ElementTree.SubElement(page, "head")
    ElementTree.SubElement(head, "title").text = "Model"
    body = ElementTree.SubElement(page, "body")
    content = ElementTree.SubElement(body, "div", {"id": "main_content"})
    for name, values in (
        ("Operator List", dict.fromkeys(read.get_operators_list())),
        ("Constant Tensor List", read.get_constant_tensors()),
    ):
        content.append(get_header(name))
        content.append(iterable_to_html(values))
    made: bytes = ElementTree.tostring(page)
    return made
