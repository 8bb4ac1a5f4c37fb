# SPDX-License-Identifier: Apache-2.0
"""Writes reference cases in the format of the shared ones: safetensors, meta.json, samples of large tensors, weights by formula."""
import json
import struct

import numpy as np

import numpy_models

NAMES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32"}


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, value in sorted(tensors.items(), key=lambda item: -item[1].itemsize):
        data = np.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": NAMES[str(value.dtype)], "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    types = {v: k for k, v in NAMES.items()}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + size + begin:8 + size + end], types[entry["dtype"]]).reshape(entry["shape"]).copy()
    return tensors


def change(path, edit):
    """Rewrites a safetensors file after `edit` changed its tensors."""
    tensors = read_safetensors(path)
    edit(tensors)
    write_safetensors(path, tensors)


def change_meta(folder, edit):
    meta = json.loads((folder / "meta.json").read_text())
    edit(meta)
    (folder / "meta.json").write_text(json.dumps(meta))


def sampled(tensors, random):
    """Large tensors by norm, sum and values at indices."""
    out = {}
    for name, value in tensors.items():
        if value.size < 40:
            out[name] = value
            continue
        index = np.sort(random.choice(value.size, 32, replace=False)).astype(np.int32)
        wide = value.astype(np.float64)
        out |= {name + ".norm": np.array([np.sqrt((wide ** 2).sum())]), name + ".idx": index, name + ".val": value.reshape(-1)[index]}
        if not name.startswith("final."):
            out[name + ".sum"] = np.array([wide.sum()])
    return out


def formula_values(salt, name, shape, scale, offset):
    key = 14695981039346656037
    for byte in f"{salt}:{name}".encode():
        key = (key ^ byte) * 1099511628211 % 2 ** 64
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    v = (z >> np.uint64(11)).astype(np.float64) * 2.0 ** -52 - 1
    return (offset + scale * v).astype(np.float32).reshape(shape)


def formula_entry(value, scale, offset):
    bits = int(value.reshape(-1).view(np.uint32).astype(np.uint64).sum())
    return {"shape": list(value.shape), "scale": scale, "offset": offset, "bits_sum_u64": hex(bits), "first4": [float(x) for x in value.reshape(-1)[:4]]}


def sum_bound(length):
    """The rule of the shared cases: 4 sqrt(K) u, never below 5e-6."""
    return max(5e-6, 4 * length ** 0.5 * 2.0 ** -24)


def write_model_case(folder, model, batch, optimizer, *, steps=0, lr=None, by_formula=False, by_samples=False, with_acts=True, with_metrics=False,
                     piecewise=False, grid=None, seed=1):
    """A case of a model with everything computed in float64 numpy."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    grid = grid or model.grid
    shapes = model.shapes() | {"input": (batch, model.channels[0], *grid), "target": (batch, model.channels[1], *grid)}
    meta = {"kind": "model", "model": {"constructor": model.constructor}, "batch": batch, "input_shape": list(shapes["input"]),
            "target_shape": list(shapes["target"]), "dtype": "float32", "optimizer": optimizer}
    values, entries = {}, {}
    for name, shape in shapes.items():
        fan = int(np.prod(shape[1:])) / (8 if name.startswith("conv_up") or name == "conv_last.weight" else 1)
        scale = {"input": 0.875, "target": 0.5}.get(name, 0.25 if len(shape) == 1 else (3 / max(1, fan)) ** 0.5)
        offset = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        values[name] = formula_values(folder.name, name, shape, scale, offset)
        entries[name] = formula_entry(values[name], scale, offset)
    x, target = values.pop("input"), values.pop("target")
    if by_formula:
        meta |= {"formula": {"salt": folder.name}, "tensors": entries}
    else:
        write_safetensors(folder / "weights.safetensors", values)
        write_safetensors(folder / "inputs.safetensors", {"input": x, "target": target})
    meta["parameters"] = int(sum(v.size for v in values.values()))
    meta["loss"] = "l2_loss" if hasattr(model, "patch") else {"name": "loss_func", "lambda_rho": model.lambda_rho}
    if model.noise_only():
        meta["noise_only_params"] = {"ranges": model.noise_only()}
    weights = {name: value.astype(np.float64) for name, value in values.items()}
    first = numpy_models.step(model, weights, x, target)
    single = lambda value: np.array(value).astype(np.float32)
    outputs = {"output": single(first["output"])}
    if with_acts:
        outputs |= {"act." + name: single(value) for name, value in first["acts"].items()}
    grads = {name: single(value) for name, value in first["grads"].items()} | {"input": single(first["input_grad"])}
    keep = lambda tensors: sampled(tensors, random) if by_samples else tensors
    outputs = keep(outputs) | {"loss": single([first["loss"]]), "loss_f64": np.array([first["loss"]])}
    if with_metrics:
        latitude = np.linspace(90, -90, grid[0])
        w = np.cos(3.1416 / 180 * latitude)  # as in the shared cases
        w *= grid[0] / w.sum()
        error = w[:, None] * (first["output"] - target) ** 2
        outputs["metric.weighted_rmse"] = single(np.sqrt(error.mean((2, 3))).mean(0))
    length = max(int(np.prod(shape[1:])) for name, shape in shapes.items() if name.endswith("weight"))
    points = int(np.prod(shapes["target"][2:])) * batch
    meta["recommended_tolerance"] = {
        "forward": {"rel_l2": sum_bound(length), "max_over_max": 6 * sum_bound(length)}, "loss": {"rel": 5e-6 if piecewise else 2e-6},
        "gradients": {"rel_l2": 1e-3 if piecewise else 2 * sum_bound(points), "max_over_max": 5e-3 if piecewise else 10 * sum_bound(points)},
        "trajectory": {"loss_rel": 1e-4 if piecewise else 1e-5, "weights_rel_l2": 2e-3 if piecewise else 1e-4}}
    files = {"outputs": outputs, "grads": keep(grads)}
    if steps:
        files["trajectory"] = keep_trajectory(model, weights, x, target, optimizer, steps, lr, keep)
    for stem, tensors in files.items():
        write_safetensors(folder / f"{stem}.safetensors", tensors)
    meta["files"] = {stem: {name: {"shape": list(v.shape), "dtype": str(v.dtype)} for name, v in tensors.items()} for stem, tensors in files.items()}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def keep_trajectory(model, weights, x, target, optimizer, steps, lr, keep):
    rule, losses = numpy_models.Optimizer(optimizer), []
    for count in range(steps):
        result = numpy_models.step(model, weights, x, target)
        losses.append(result["loss"])
        rule.update(weights, result["grads"], lr[count] if lr else optimizer["lr"])
    losses.append(numpy_models.step(model, weights, x, target)["loss"])
    tensors = keep({"final." + name: value.astype(np.float32) for name, value in weights.items()})
    tensors["loss"] = np.array(losses)
    return tensors | ({"lr": np.array(lr)} if lr else {})
