# SPDX-License-Identifier: Apache-2.0
"""Table cases of other sizes and values than the shared ones, computed in numpy and plain Python from the tutorials' rules."""
import itertools
import json
import math

import h5py
import numpy as np

from case_writer import write_safetensors


def write_json(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for stem, content in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(content))
    return folder


def schedules(folder):
    peak, warmup, steps = 3e-3, 4, 25
    cosine = lambda k, n: 0.5 * (1 + math.cos(math.pi * k / n))
    vit = {"config": {"lr": peak, "warmup": warmup, "num_iters": steps}, "lr_after_last_step": 0.0,
           "lr_tutorial": [peak * min((s + 1) / warmup, cosine(s, steps)) for s in range(steps)],
           "lr_corrected": [peak * ((s + 1) / warmup if s < warmup else cosine(s - warmup, steps - warmup)) for s in range(steps)]}
    start, end, batch, base, total = 1e-3, 1e-5, 96, 32, 18
    top = start * math.sqrt(batch / base)
    wave = lambda k, n: end + (top - end) * cosine(k, n)
    unet = {"config": {"scaling": "sqrt", "start_lr": start, "end_lr": end, "warmup_steps": 3, "global_bs": batch, "base_bs": base,
                       "Nsamples": 96 * 9, "num_epochs": 2, "tot_steps": total},
            "lr_tutorial": [top * k / 3 if k <= 3 else wave(k - 3, total) for k in range(1, total + 1)],
            "lr_corrected": [top * k / 3 if k <= 3 else wave(k - 3, total - 3) for k in range(1, total + 1)]}
    return write_json(folder, meta={"kind": "schedules", "file": "rates.json", "count": 2},
                      rates={"tolerance": {"rel": 1e-12, "abs": 1e-18}, "tables": [vit, unet]})


def splits(folder):
    def entry(size, parts):
        chunk = -(-size // parts)
        last = max(0, size - chunk * (parts - 1))
        if last == 0:
            chunk = size // parts
            last = size - chunk * (parts - 1)
        sections = [chunk] * (parts - 1) + [last]
        return {"size": size, "parts": parts, "sections": sections, "max_minus_min": max(sections) - min(sections), "has_empty_part": min(sections) == 0}
    cases = [entry(*pair) for pair in [(17, 4), (11, 6), (2025, 7), (3, 5), (64, 8)]]
    return write_json(folder, meta={"kind": "splits", "file": "splits.json", "count": len(cases)}, splits={"cases": cases})


def rank_groups(folder):
    def entry(order, **sizes):
        names = order.split("-")
        strides = dict(zip(names, itertools.accumulate([1] + [sizes[n] for n in names[:-1]], lambda a, b: a * b)))
        def group_list(axes):
            inside = [n for n in names if n in axes]
            walk = lambda some: [sum(c * strides[n] for c, n in zip(reversed(place), some)) for place in itertools.product(*(range(sizes[n]) for n in reversed(some)))]
            return [[first + step for step in walk(inside)] for first in walk([n for n in names if n not in axes])]
        return {"order": order, **sizes, "world_size": math.prod(sizes.values()), "order_completed": order,
                "groups": {g: group_list(g.split("-")) for g in ("tp", "cp", "pp", "dp", "tp-cp", "dp-cp", "pp-dp")}}
    cases = [entry("dp-pp-tp-cp", tp=3, cp=2, pp=2, dp=5), entry("cp-tp-dp-pp", tp=2, cp=3, pp=1, dp=2), {"order": "cp-dp", "tp": 2, "cp": 1, "pp": 1, "dp": 1, "error": "RuntimeError"}]
    return write_json(folder, meta={"kind": "rank_groups", "file": "groups.json", "count": len(cases)}, groups={"cases": cases})


def adam(folder):
    random = np.random.default_rng(3)
    folder.mkdir(parents=True)
    keys = {"lr": 0.01, "betas": [0.8, 0.97], "eps": 1e-7, "weight_decay": 0.05}
    grads = random.normal(size=(5, 7)).astype(np.float32)
    start = random.normal(size=7).astype(np.float32)
    p, m, v, after = start.astype(np.float64), 0, 0, []
    for t, g in enumerate(grads.astype(np.float64), 1):
        g = g + keys["weight_decay"] * p
        m, v = 0.8 * m + (1 - 0.8) * g, 0.97 * v + (1 - 0.97) * g * g
        p = p - keys["lr"] / (1 - 0.8 ** t) * m / (np.sqrt(v) / np.sqrt(1 - 0.97 ** t) + keys["eps"])
        after.append(p)
    write_safetensors(folder / "data.safetensors", {"param0": start, "grads": grads, "adam0.params_f64": np.array(after), "adam0.exp_avg_f64": m, "adam0.exp_avg_sq_f64": v})
    return write_json(folder, meta={"kind": "adam", "configs": [keys], "tolerance": {"f32": {"params": "", "moments": ""}, "f64": {"rel": 1e-13}}})


def losses(folder):
    random = np.random.default_rng(4)
    folder.mkdir(parents=True)
    p, t = (random.normal(size=(3, 2, 7, 9)).astype(np.float32) for _ in range(2))
    a, b = p.astype(np.float64), t.astype(np.float64)
    axes = (1, 2, 3)
    norms = np.sqrt(((a - b) ** 2).sum(axes)), np.sqrt((b ** 2).sum(axes))
    latitude = 90 - 180 * np.arange(7) / 6
    exact, rough = (np.cos(pi / 180 * latitude) * 7 / np.cos(pi / 180 * latitude).sum() for pi in (np.pi, 3.1416))
    rmse = lambda w: np.sqrt((w[:, None] * (a - b) ** 2).mean((2, 3)))
    acc = lambda w: (w[:, None] * a * b).sum((2, 3)) / np.sqrt((w[:, None] * a * a).sum((2, 3)) * (w[:, None] * b * b).sum((2, 3)))
    data = {"w.pred": p, "w.target": t, "w.l2_loss_f64": np.array([(norms[0] / norms[1]).mean()]),
            "w.l2_loss_grad_f64": (a - b) / (norms[0] * norms[1] * 3)[:, None, None, None],
            "w.weighted_rmse_channels_f64_exact_pi": rmse(exact), "w.weighted_acc_f64_exact_pi": acc(exact).mean(0), "w.weighted_rmse_channels_f64": rmse(rough)}
    p, t = (0.1 * random.normal(size=(2, 3, 4, 4, 4)).astype(np.float32) for _ in range(2))
    a, b = p.astype(np.float64), t.astype(np.float64)
    l1, rho = np.abs(a - b).mean(), np.abs(np.exp(14 * a[:, 0]) - np.exp(14 * b[:, 0])).mean()
    data |= {"box.pred": p, "box.target": t, "box.loss_func.lambda0_f64": np.array([l1 + 0.3 * rho]), "box.loss_func_opt_final.lambda0_f64": np.array([l1 + 0.3 * rho / 3]),
             "box.loss_func.lambda0_f32": np.array([l1 + 0.3 * rho], np.float32)}
    write_safetensors(folder / "data.safetensors", data)
    return write_json(folder, meta={"kind": "losses", "unet": {"lambdas": [0.3]}, "tolerance": {"f32": {"rel": 2e-6}, "f64": {"rel": 1e-12}, "exp": "rel 5e-6", "lat_weight": "absolute 1e-6"}})


def unpatchify(folder):
    folder.mkdir(parents=True)
    p, c, h, w = 3, 2, 2, 3
    image = np.arange(2 * c * h * p * w * p, dtype=np.float32).reshape(2, c, h * p, w * p)
    tokens = image.reshape(2, c, h, p, w, p).transpose(0, 2, 4, 1, 3, 5).reshape(2, h * w, c * p * p)
    back = tokens.reshape(2, h, w, p, p, c).transpose(0, 5, 1, 3, 2, 4).reshape(image.shape)
    write_safetensors(folder / "data.safetensors", {"image": image, "tokens": np.ascontiguousarray(tokens), "image_from_tokens_identity_head": np.ascontiguousarray(back)})
    return write_json(folder, meta={"kind": "unpatchify", "img_size": [h * p, w * p], "patch_size": p, "channels": c, "batch": 2, "embed_dim": c * p * p})


def era5_pairs(folder):
    random = np.random.default_rng(5)
    lengths, c, size, crop, lead = (7, 6, 8), 2, (5, 9), (4, 7), 2
    years = [random.normal(size=(n, c, *size)).astype(np.float32) for n in lengths]
    (folder / "years").mkdir(parents=True)
    for i, values in enumerate(years):
        with h5py.File(folder / f"years/{1990 + i}.h5", "w") as file:
            file["fields"] = values
    mean, std = random.normal(size=(1, c, 1, 1)).astype(np.float32), random.uniform(1, 2, size=(1, c, 1, 1)).astype(np.float32)
    np.save(folder / "global_means.npy", mean)
    np.save(folder / "global_stds.npy", std)
    first, rows, samples = lengths[0], [], {}
    for index in range(first * len(lengths)):
        year, t = divmod(index, first)
        t %= first - lead
        t += lead if t < lead else 0
        row = {"index": index, "year_index": year, "input_step": t}
        if t + lead >= lengths[year]:
            row["error"] = "IndexError"
        elif index < 4:
            cut = lambda step: ((years[year][step][:, :crop[0], :crop[1]] - mean[0]) / std[0]).astype(np.float32)
            samples |= {f"dt{lead}.sample{index}.input": cut(t), f"dt{lead}.sample{index}.target": cut(t + lead)}
        rows.append(row)
    correct = [[y, t, t + lead] for y, n in enumerate(lengths) for t in range(n - lead)]
    write_safetensors(folder / "samples.safetensors", samples)
    return write_json(folder, meta={"kind": "era5_pairs", "img_size": crop, "tensors": "sample i of folder years, normalised"},
                      pairs={"cases": [{"folder": "years", "dt": lead, "len_tutorial": len(rows), "tutorial": rows, "correct_pairs": correct, "correct_count": len(correct)}]})


ALL = [schedules, splits, rank_groups, adam, losses, unpatchify, era5_pairs]
