# SPDX-License-Identifier: Apache-2.0
"""The ViT and the U-Net of the tutorials in float64 numpy, with losses, gradients and optimizers, from their descriptions."""
import numpy as np

import numpy_tape as tape


class Vit:
    def __init__(self, channels, grid, patch, embed, depth, heads, joint, mlp_ratio=4):
        self.channels, self.grid, self.patch, self.embed, self.depth, self.heads, self.joint = channels, grid, patch, embed, depth, heads, joint
        self.hidden = int(embed * mlp_ratio)
        self.constructor = {"img_size": list(grid), "patch_size": patch, "in_chans": channels[0], "out_chans": channels[1], "embed_dim": embed,
                            "depth": depth, "num_heads": heads, "mlp_ratio": mlp_ratio, "dropout": 0.0}

    def shapes(self):
        e, p, tokens = self.embed, self.patch, (self.grid[0] // self.patch) * (self.grid[1] // self.patch)
        shapes = {"pos_embed": (1, tokens, e), "patch_embed.proj.weight": (e, self.channels[0], p, p), "patch_embed.proj.bias": (e,)}
        for i in range(self.depth):
            b = f"blocks.{i}."
            for norm in ("norm1", "norm2"):
                shapes |= {b + norm + ".weight": (e,), b + norm + ".bias": (e,)}
            for name, rows in {"qkv": 3 * e}.items() if self.joint else {"q": e, "k": e, "v": e}.items():
                shapes |= {f"{b}attn.{name}.weight": (rows, e), f"{b}attn.{name}.bias": (rows,)}
            shapes |= {b + "attn.proj.weight": (e, e), b + "attn.proj.bias": (e,), b + "mlp.fc1.weight": (self.hidden, e),
                       b + "mlp.fc1.bias": (self.hidden,), b + "mlp.fc2.weight": (e, self.hidden), b + "mlp.fc2.bias": (e,)}
        return shapes | {"norm.weight": (e,), "norm.bias": (e,), "head.weight": (p * p * self.channels[1], e)}

    def noise_only(self):
        e = self.embed
        name, begin = ("qkv", e) if self.joint else ("k", 0)
        return {f"blocks.{i}.attn.{name}.bias": [begin, begin + e] for i in range(self.depth)}

    def linear(self, x, name, w, bias=True):
        y = tape.matmul(x, tape.transpose(w[name + ".weight"], 1, 0))
        return tape.add(y, w[name + ".bias"]) if bias else y

    def attention(self, x, name, w):
        batch, tokens, e = x.value.shape
        if self.joint:
            joint = tape.reshape(self.linear(x, name + ".qkv", w), batch, tokens, 3, e)
            parts = [tape.take(joint, (slice(None), slice(None), i)) for i in range(3)]
        else:
            parts = [self.linear(x, f"{name}.{part}", w) for part in "qkv"]
        dim = e // self.heads
        q, k, v = (tape.transpose(tape.reshape(part, batch, tokens, self.heads, dim), 0, 2, 1, 3) for part in parts)
        weights = tape.softmax(tape.scale(tape.matmul(q, tape.transpose(k, 0, 1, 3, 2)), dim ** -0.5))
        y = tape.reshape(tape.transpose(tape.matmul(weights, v), 0, 2, 1, 3), batch, tokens, e)
        return self.linear(y, name + ".proj", w)

    def forward(self, x, w):
        """Output and activations, in the order of the forward pass."""
        p, acts = self.patch, {}
        batch, c = x.value.shape[:2]
        h, v = self.grid[0] // p, self.grid[1] // p
        patches = tape.reshape(tape.transpose(tape.reshape(x, batch, c, h, p, v, p), 0, 2, 4, 1, 3, 5), batch, h * v, c * p * p)
        y = tape.add(tape.matmul(patches, tape.transpose(tape.reshape(w["patch_embed.proj.weight"], self.embed, -1), 1, 0)), w["patch_embed.proj.bias"])
        acts["patch_embed"] = y
        acts["tokens"] = y = tape.add(y, w["pos_embed"])
        for i in range(self.depth):
            b, a = f"blocks.{i}.", f"block{i}"
            n = acts[a + ".norm1"] = tape.layer_norm(y, w[b + "norm1.weight"], w[b + "norm1.bias"])
            n = acts[a + ".attn"] = self.attention(n, b + "attn", w)
            y = tape.add(y, n)
            n = acts[a + ".norm2"] = tape.layer_norm(y, w[b + "norm2.weight"], w[b + "norm2.bias"])
            n = acts[a + ".mlp"] = self.linear(tape.gelu(self.linear(n, b + "mlp.fc1", w)), b + "mlp.fc2", w)
            acts[a] = y = tape.add(y, n)
        acts["norm"] = y = tape.layer_norm(y, w["norm.weight"], w["norm.bias"])
        head = self.linear(y, "head", w, bias=False)
        acts["head"] = tape.reshape(head, batch, h, v, -1)
        out = tape.reshape(head, batch, h, v, p, p, self.channels[1])
        return tape.reshape(tape.transpose(out, 0, 5, 1, 3, 2, 4), batch, self.channels[1], *self.grid), acts

    def loss(self, output, target):
        axes = tuple(range(1, target.ndim))
        difference = output.value - target
        norm, size = np.sqrt((difference ** 2).sum(axes)), np.sqrt((target ** 2).sum(axes))
        slope = difference / (norm * size * len(target)).reshape((-1,) + (1,) * len(axes))
        return tape.Node((norm / size).mean(), [(output, lambda g: g * slope)])


class Unet:
    SCALES = 5  # full_scale false

    def __init__(self, channels, width, lambda_rho):
        self.channels, self.width, self.lambda_rho = channels, width, lambda_rho
        self.constructor = {"full_scale": False, "N_out_channels": channels[1], "in_channels": channels[0], "width": width}

    def depth_of(self, scale):
        return self.width * min(8, 2 ** (scale - 1))

    def shapes(self):
        shapes, last = {}, self.channels[0]
        for s in range(1, self.SCALES + 1):
            shapes |= {f"conv_down{s}.0.weight": (self.depth_of(s), last, 4, 4, 4), f"conv_down{s}.0.bias": (self.depth_of(s),)}
            last = self.depth_of(s)
        for s in range(self.SCALES, 1, -1):
            into = self.depth_of(s) * (1 if s == self.SCALES else 2)
            shapes |= {f"conv_up{s}.0.weight": (into, self.depth_of(s - 1), 4, 4, 4), f"conv_up{s}.0.bias": (self.depth_of(s - 1),)}
        return shapes | {"conv_last.weight": (2 * self.width, self.channels[1], 4, 4, 4), "conv_last.bias": (self.channels[1],)}

    def noise_only(self):
        return {}

    def forward(self, x, w):
        acts, skips = {}, []
        for s in range(1, self.SCALES + 1):
            x = acts[f"conv_down{s}"] = tape.leaky_relu(tape.halve(x, w[f"conv_down{s}.0.weight"], w[f"conv_down{s}.0.bias"]), 0.01)
            skips.append(x)
        skips.pop()
        for s in range(self.SCALES, 1, -1):
            x = acts[f"conv_up{s}"] = tape.leaky_relu(tape.double(x, w[f"conv_up{s}.0.weight"], w[f"conv_up{s}.0.bias"]), 0.0)
            x = tape.concatenate(x, skips.pop())
        x = acts["conv_last"] = tape.double(x, w["conv_last.weight"], w["conv_last.bias"])
        return tape.tanh(x), acts

    def loss(self, output, target):
        difference = output.value - target
        rho, wanted = np.exp(14 * output.value[:, 0]), np.exp(14 * target[:, 0])
        slope = np.sign(difference) / difference.size
        slope[:, 0] += self.lambda_rho * np.sign(rho - wanted) * 14 * rho / rho.size
        value = np.abs(difference).mean() + self.lambda_rho * np.abs(rho - wanted).mean()
        return tape.Node(value, [(output, lambda g: g * slope)])


def step(model, weights, x, target):
    """Loss, output, activations, gradients of the weights and of the input."""
    nodes = {name: tape.Node(value) for name, value in weights.items()}
    source = tape.Node(x)
    output, acts = model.forward(source, nodes)
    loss = model.loss(output, target)
    loss.backward()
    return {"loss": float(loss.value), "output": output.value, "acts": {k: v.value for k, v in acts.items()},
            "grads": {k: v.grad for k, v in nodes.items()}, "input_grad": source.grad}


class Optimizer:
    """Adam, AdamW and SGD with momentum, as torch.optim states them."""

    def __init__(self, keys):
        self.keys, self.state, self.count = keys, {}, 0

    def update(self, weights, grads, lr):
        self.count += 1
        name, decay = self.keys.get("name", "Adam"), self.keys.get("weight_decay", 0)
        for key, g in grads.items():
            w = weights[key]
            if name == "AdamW":
                w = w * (1 - lr * decay)
            else:
                g = g + decay * w
            if name == "SGD":
                v = self.state[key] = self.keys.get("momentum", 0) * self.state.get(key, 0) + g
                weights[key] = w - lr * v
                continue
            b1, b2 = self.keys.get("betas", [0.9, 0.999])
            m, s = self.state.get(key, (0, 0))
            m, s = b1 * m + (1 - b1) * g, b2 * s + (1 - b2) * g * g
            self.state[key] = m, s
            weights[key] = w - lr / (1 - b1 ** self.count) * m / (np.sqrt(s) / np.sqrt(1 - b2 ** self.count) + self.keys.get("eps", 1e-8))
