# SPDX-License-Identifier: Apache-2.0
"""Seconds that each layer of a peer takes, forward and backward, as `welkin bench --layers` takes them of ours: under the same names.

A layer's forward pass is a call of its module; its backward pass lasts from the gradient of its output to that of its input, or, where the input has none, to
the next layer's or the end. What a module does besides its children (attention between its matrices) is its time less theirs.
"""
import time

from torch import nn

WHOLE = (nn.Linear, nn.LayerNorm)
CORE = "core"  # of attention


def layers_of(model):
    """name -> module: what ours has as a layer."""
    found = {}
    for name, module in model.named_modules():
        is_attention = type(module).__name__ == "Attention"
        is_box = name.startswith("conv_") and "." not in name
        if isinstance(module, WHOLE) or is_attention or is_box or type(module).__name__ == "PatchEmbed":
            found[name] = module
    return found


class LayerTimer:
    """`end()` follows the backward pass of a step; `per_step(steps)` gives means."""

    def __init__(self, model):
        self.names = layers_of(model)
        self.seconds = {name: [0.0, 0.0] for name in self.names}
        self.entered, self.open = {}, {}
        for name, module in self.names.items():
            module.register_forward_pre_hook(lambda _, inputs, name=name: self.enter(name))
            module.register_forward_hook(lambda module, inputs, _, name=name: self.leave(name))
            module.register_full_backward_pre_hook(lambda module, _, name=name: self.enter_backward(name))
            module.register_full_backward_hook(lambda module, gradients, _, name=name: self.leave_backward(name) if gradients[0] is not None else None)

    def clear(self):
        self.seconds = {name: [0.0, 0.0] for name in self.names}

    def enter(self, name):
        self.entered[name] = time.perf_counter()

    def leave(self, name):
        self.seconds[name][0] += time.perf_counter() - self.entered.pop(name)

    def enter_backward(self, name):
        self.open[name] = time.perf_counter()

    def leave_backward(self, name):
        if name in self.open:
            self.seconds[name][1] += time.perf_counter() - self.open.pop(name)

    def end(self):
        """The backward pass is over: so are the layers whose input has no gradient, of which torch tells nothing else."""
        for name in list(self.open):
            self.leave_backward(name)

    def per_step(self, steps):
        """name -> [forward, backward] seconds; attention's own part as `.core`."""
        means = {name: [value / steps for value in pair] for name, pair in self.seconds.items()}
        for name in [name for name, module in self.names.items() if type(module).__name__ == "Attention"]:
            whole = means.pop(name)
            inside = [pair for child, pair in means.items() if child.startswith(name + ".") and child.count(".") == name.count(".") + 1]
            means[f"{name}.{CORE}"] = [whole[i] - sum(pair[i] for pair in inside) for i in range(2)]
        return means
