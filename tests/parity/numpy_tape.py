# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode differentiation in float64 numpy: just what the two models need. Shares no line with Welkin or PyTorch."""
import math

import numpy as np

erf = np.vectorize(math.erf)


class Node:
    """A value and how its gradient flows to the values that it was made of."""

    def __init__(self, value, parents=()):
        self.value, self.parents, self.grad = np.asarray(value, np.float64), parents, None

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if id(node) not in seen:
                seen.add(id(node))
                for parent, _ in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        for node in order:
            node.grad = np.zeros_like(node.value)
        self.grad = np.ones_like(self.value)
        for node in reversed(order):
            for parent, pull in node.parents:
                parent.grad += pull(node.grad)


def fit(grad, shape):
    """Sums a gradient over the axes along which its value was broadcast."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    return grad.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1 and grad.shape[i] != 1), keepdims=True)


def add(a, b):
    return Node(a.value + b.value, [(a, lambda g: fit(g, a.value.shape)), (b, lambda g: fit(g, b.value.shape))])


def reshape(a, *shape):
    return Node(a.value.reshape(shape), [(a, lambda g: g.reshape(a.value.shape))])


def transpose(a, *axes):
    return Node(a.value.transpose(axes), [(a, lambda g: g.transpose(np.argsort(axes)))])


def take(a, index):
    def pull(g):
        whole = np.zeros_like(a.value)
        whole[index] = g
        return whole
    return Node(a.value[index], [(a, pull)])


def matmul(a, b):
    return Node(a.value @ b.value, [(a, lambda g: fit(g @ b.value.swapaxes(-1, -2), a.value.shape)),
                                    (b, lambda g: fit(a.value.swapaxes(-1, -2) @ g, b.value.shape))])


def scale(a, factor):
    return Node(a.value * factor, [(a, lambda g: g * factor)])


def pointwise(a, value, slope):
    return Node(value, [(a, lambda g: g * slope)])


def gelu(a):
    x = a.value
    phi = 0.5 * (1 + erf(x / math.sqrt(2)))
    return pointwise(a, x * phi, phi + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def leaky_relu(a, slope):
    factor = np.where(a.value > 0, 1.0, slope)
    return pointwise(a, a.value * factor, factor)


def tanh(a):
    y = np.tanh(a.value)
    return pointwise(a, y, 1 - y * y)


def softmax(a):
    e = np.exp(a.value - a.value.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return Node(y, [(a, lambda g: y * (g - (g * y).sum(-1, keepdims=True)))])


def layer_norm(a, weight, bias, epsilon=1e-6):
    mean, var = a.value.mean(-1, keepdims=True), a.value.var(-1, keepdims=True)
    inverse = 1 / np.sqrt(var + epsilon)
    x = (a.value - mean) * inverse

    def pull(g):
        h = g * weight.value
        return inverse * (h - h.mean(-1, keepdims=True) - x * (h * x).mean(-1, keepdims=True))
    return Node(x * weight.value + bias.value, [(a, pull), (weight, lambda g: fit(g * x, weight.value.shape)),
                                                (bias, lambda g: fit(g, bias.value.shape))])


def concatenate(a, b):
    n = a.value.shape[1]
    return Node(np.concatenate([a.value, b.value], 1), [(a, lambda g: g[:, :n]), (b, lambda g: g[:, n:])])


def taps():
    return [(i, j, k) for i in range(4) for j in range(4) for k in range(4)]


def window(padded, tap, extent):
    return padded[(slice(None), slice(None)) + tuple(slice(t, t + 2 * n, 2) for t, n in zip(tap, extent))]


def gather(x, weight):
    """Kernel 4, stride 2, padding 1; weight (out, in, 4, 4, 4)."""
    extent = [n // 2 for n in x.shape[2:]]
    padded = np.pad(x, [(0, 0), (0, 0)] + [(1, 1)] * 3)
    return sum(np.einsum("bcdhw,oc->bodhw", window(padded, t, extent), weight[(slice(None), slice(None)) + t]) for t in taps())


def spread(y, weight):
    """The adjoint of gather: weight (from, to, 4, 4, 4)."""
    extent = y.shape[2:]
    padded = np.zeros((y.shape[0], weight.shape[1]) + tuple(2 * n + 2 for n in extent))
    for t in taps():
        window(padded, t, extent)[...] += np.einsum("bodhw,oc->bcdhw", y, weight[(slice(None), slice(None)) + t])
    return padded[:, :, 1:-1, 1:-1, 1:-1]


def correlate(fine, coarse):
    """The gradient of a kernel: (coarse channels, fine channels, 4, 4, 4)."""
    extent = coarse.shape[2:]
    padded = np.pad(fine, [(0, 0), (0, 0)] + [(1, 1)] * 3)
    out = np.stack([np.einsum("bcdhw,bodhw->oc", window(padded, t, extent), coarse) for t in taps()], -1)
    return out.reshape(out.shape[:2] + (4, 4, 4))


def halve(x, weight, bias):
    y = gather(x.value, weight.value) + bias.value[:, None, None, None]
    return Node(y, [(x, lambda g: spread(g, weight.value)), (weight, lambda g: correlate(x.value, g)), (bias, lambda g: g.sum((0, 2, 3, 4)))])


def double(x, weight, bias):
    y = spread(x.value, weight.value) + bias.value[:, None, None, None]
    return Node(y, [(x, lambda g: gather(g, weight.value)), (weight, lambda g: correlate(g, x.value)), (bias, lambda g: g.sum((0, 2, 3, 4)))])
