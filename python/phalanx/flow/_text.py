"""The graph of a traced function as StableHLO text, in the generic form of every operation."""

from typing import Any, Dict, List

import numpy

from ._dtypes import DType, bool_, from_bfloat16
from ._trace import Block, Node, Tensor, type_text


class _Names:
    """Names of values: arguments are ``%arg0``, others ``%0`` and on, in order."""

    def __init__(self) -> None:
        self.names: Dict[int, str] = {}
        self.arguments = self.others = 0

    def argument(self, tensor: Tensor) -> str:
        self.names[id(tensor)] = name = f"%arg{self.arguments}"
        self.arguments += 1
        return name

    def results(self, node: Node) -> str:
        name = f"%{self.others}"
        self.others += 1
        count = len(node.outputs)
        for i, output in enumerate(node.outputs):
            self.names[id(output)] = name if count == 1 else f"{name}#{i}"
        return name if count == 1 else f"{name}:{count}"

    def of(self, tensor: Tensor) -> str:
        return self.names[id(tensor)]


def ints(values: Any) -> str:
    """An attribute with a list of integers."""
    items = ", ".join(str(int(value)) for value in values)
    return f"array<i64: {items}>" if items else "array<i64>"


def groups_text(groups: Any) -> str:
    """An attribute with a table of integers: replica groups, or pairs of source and target."""
    rows = ", ".join("[" + ", ".join(str(item) for item in row) + "]" for row in groups)
    return f"dense<[{rows}]> : tensor<{len(groups)}x{len(groups[0])}xi64>"


def _element_text(value: Any, dtype: DType) -> str:
    if dtype is bool_:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    bits = numpy.asarray(value, dtype=dtype.numpy)
    number = float(from_bfloat16(bits)) if dtype.name == "bfloat16" else float(bits)
    if numpy.isfinite(number):
        return f"{number:.17e}"
    return "0x" + bits.tobytes()[::-1].hex().upper()


def _nested_text(array: Any, dtype: DType) -> str:
    if array.ndim == 0:
        return _element_text(array[()], dtype)
    return "[" + ", ".join(_nested_text(row, dtype) for row in array) + "]"


def _dense_text(node: Node, shape: Any, dtype: DType) -> str:
    array = node.params["array"]
    if array.size == 0:
        return "dense<>"
    if node.params.get("splat") or array.ndim == 0:
        return f"dense<{_element_text(array.reshape(-1)[0] if array.ndim else array[()], dtype)}>"
    if dtype is bool_ or array.size <= 8:
        return f"dense<{_nested_text(array, dtype)}>"
    return 'dense<"0x' + numpy.ascontiguousarray(array).tobytes().hex().upper() + '">'


class _Printer:
    def __init__(self) -> None:
        self.lines: List[str] = []
        self.names = _Names()

    def block(self, block: Block, depth: int) -> None:
        for node in block.nodes:
            if node.op == "alias":
                self.names.names[id(node.outputs[0])] = self.names.of(node.inputs[0])
            else:
                self.node(node, depth)

    def node(self, node: Node, depth: int) -> None:
        pad = "  " * depth
        operands = ", ".join(self.names.of(tensor) for tensor in node.inputs)
        attributes = dict(node.attributes)
        if node.op == "constant":
            output = node.outputs[0]
            attributes["value"] = (_dense_text(node, output.shape, output.dtype) + " : " +
                                   type_text(output.shape, output.dtype))
        words = ", ".join(f"{key} = {value}" if value else key for key, value in attributes.items())
        inside = f" <{{{words}}}>" if words else ""
        takes = ", ".join(type_text(tensor.shape, tensor.dtype) for tensor in node.inputs)
        gives = ", ".join(type_text(tensor.shape, tensor.dtype) for tensor in node.outputs)
        gives = gives if len(node.outputs) == 1 else f"({gives})"
        head = f'"stablehlo.{node.op}"({operands}){inside}'
        if not node.regions:
            self.lines.append(f"{pad}{self.names.results(node)} = {head} : ({takes}) -> {gives}")
            return
        lines, self.lines = self.lines, []
        for i, region in enumerate(node.regions):
            self.region(region, depth + 1)
            self.lines.append(f"{pad}}}, {{" if i + 1 < len(node.regions) else f"{pad}}}) : ({takes}) -> {gives}")
        inner, self.lines = self.lines, lines
        self.lines.append(f"{pad}{self.names.results(node)} = {head} ({{")
        self.lines += inner

    def region(self, region: Block, depth: int) -> None:
        words = [f"{self.names.argument(t)}: {type_text(t.shape, t.dtype)}" for t in region.arguments]
        self.lines.append("  " * (depth - 1) + f"^bb0({', '.join(words)}):")
        self.block(region, depth)
        self.returning('"stablehlo.return"({}) : ({}) -> ()', region, depth)

    def returning(self, form: str, block: Block, depth: int) -> None:
        names = ", ".join(self.names.of(tensor) for tensor in block.results)
        types = ", ".join(type_text(tensor.shape, tensor.dtype) for tensor in block.results)
        self.lines.append("  " * depth + form.format(names, types))


def needed(block: Block) -> None:
    """Drops the nodes of a block, and of the regions in it, that nothing needs."""
    wanted = {id(tensor) for tensor in block.results}
    kept = []
    for node in reversed(block.nodes):
        if not any(id(output) in wanted for output in node.outputs):
            continue
        for region in node.regions:
            needed(region)
        kept.append(node)
        wanted.update(id(tensor) for tensor in node.inputs)
        for region in node.regions:
            wanted.update(region.captures)
    block.nodes = kept[::-1]


def module_text(block: Block, name: str) -> str:
    """The text of a module with one public function."""
    needed(block)
    printer = _Printer()
    takes = ", ".join(f"{printer.names.argument(t)}: {type_text(t.shape, t.dtype)}" for t in block.arguments)
    gives = ", ".join(type_text(t.shape, t.dtype) for t in block.results)
    printer.lines += [f"module @{name} {{", f"  func.func public @main({takes}) -> ({gives}) {{"]
    printer.block(block, 2)
    printer.returning("return {} : {}" if block.results else "return", block, 2)
    printer.lines += ["  }", "}", ""]
    return "\n".join(printer.lines)
