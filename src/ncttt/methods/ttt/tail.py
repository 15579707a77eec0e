"""What follows a tapped layer, as a module of its own, copied out of the traced forward of a classifier.

Only the forwards of the modules around the layer are traced; everything else, blocks with control flow included, is
copied whole. A classifier whose own forward depends on values, or that leads something past the layer, has no tail.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from ncttt.model.modes import evaluating


class _Around(fx.Tracer):
    """Traces the modules that contain the layer, and takes the others as they are."""

    def __init__(self, layer: str):
        super().__init__()
        self.layer = layer

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not self.layer.startswith(f"{module_qualified_name}.")


def copy_tail(classifier: nn.Module, layer: str, features: Tensor, logits: Tensor) -> nn.Module | None:
    """A copy of what leads from the layer's output to the vector `(B, width)` that the last linear layer reads.

    Without a linear layer at the end it leads to the logits. None where there is no such module: the copy, last layer
    included, must turn the example's features into its logits.
    """
    nodes = _traced(classifier, layer)
    if nodes is None:
        return None
    start, end = nodes
    whole = _between(classifier, start, end)
    if whole is None or not _leads_to(whole, features, logits):
        return None
    if end.op == "call_module" and isinstance(classifier.get_submodule(str(end.target)), nn.Linear):
        whole = _between(classifier, start, end.all_input_nodes[0])
    return None if whole is None else copy.deepcopy(whole).requires_grad_()


def _traced(classifier: nn.Module, layer: str) -> tuple[fx.Node, fx.Node] | None:
    """The nodes of the layer, where it runs first, and of the logits."""
    try:
        with evaluating(classifier):
            graph = _Around(layer).trace(classifier)
    except Exception:  # tracing runs somebody's forward with stand-ins for tensors, which fails in any way it likes
        return None
    nodes = [node for node in graph.nodes if node.op == "call_module" and node.target == layer]
    logits = _logits_node(next(node for node in graph.nodes if node.op == "output").args[0])
    return (nodes[0], logits) if nodes and logits is not None else None


def _logits_node(output: Any) -> fx.Node | None:
    """The logits in what a traced forward returns, by the rules of `taps.logits_of`."""
    if isinstance(output, Mapping):
        nodes = [value for value in output.values() if isinstance(value, fx.Node)]
        output = output.get("logits", output.get("out", nodes[0] if len(nodes) == 1 else None))
    elif isinstance(output, Sequence) and len(output):
        output = output[0]
    return output if isinstance(output, fx.Node) else None


def _between(classifier: nn.Module, start: fx.Node, end: fx.Node) -> fx.GraphModule | None:
    """The module from one node's value to another's, which shares its parts with the classifier."""
    needed, open_ends = set(), [end]
    while open_ends:
        node = open_ends.pop()
        if node is start or node in needed:
            continue
        if node.op == "placeholder":  # something reaches the end by another way than through the layer
            return None
        needed.add(node)
        open_ends += node.all_input_nodes
    graph = fx.Graph()
    copies = {start: graph.placeholder("features")}
    for node in start.graph.nodes:
        if node in needed:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(copies[end])
    return fx.GraphModule(classifier, graph)


@torch.no_grad()
def _leads_to(module: nn.Module, features: Tensor, logits: Tensor) -> bool:
    try:
        with evaluating(module):
            output = module(features.clone())
    except Exception:  # what works in the classifier's forward may fail on its own
        return False
    return output.shape == logits.shape and torch.allclose(output, logits, rtol=1e-3, atol=1e-4)
