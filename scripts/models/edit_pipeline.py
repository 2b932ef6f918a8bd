# SPDX-License-Identifier: Apache-2.0
"""The modules of nets_edit.py wired as a pipeline of four denoising steps: where each module's inputs come from.

    modules()   name -> torch module
    SIGNATURE   name -> names of inputs and outputs
    calls()     name -> the inputs of the module's first call in a whole run
"""
import numpy as np
import torch

import nets_edit as E
import seeds

SIZE, STEPS, Z, D, HEADS, VOCABULARY, PREFIX, SUFFIX, DROP = 64, 4, 16, 96, 4, 512, 6, 16, 4
GRID = SIZE // 16
TEXT_LENGTH = PREFIX + GRID * GRID + SUFFIX - DROP

SIGNATURE = dict(
    vae_encoder=(["image"], ["latent"]), vision_encoder=(["image"], ["image_embeds"]),
    text_encoder=(["prefix_ids", "image_embeds", "suffix_ids"], ["text_states"]), time_embed=(["timestep"], ["temb"]),
    mmdit=(["latents", "cond_latents", "text_states", "temb"], ["velocity"]), cfg_combine=(["cond", "uncond"], ["velocity"]),
    scheduler_step=(["latents", "velocity", "sigma", "sigma_next"], ["latents_next"]), pack_latents=(["latent"], ["tokens"]),
    unpack_latents=(["tokens"], ["latent"]), vae_decoder=(["latent"], ["image_out"]))


def modules():
    return dict(
        vae_encoder=E.VaeEncoder(z=Z), vision_encoder=E.VisionEncoder(size=SIZE, out=D),
        text_encoder=E.TextEncoder(vocabulary=VOCABULARY, d=D, heads=HEADS, kv=HEADS // 2, drop=DROP),
        time_embed=E.TimeEmbed(d=D), mmdit=E.MMDiT(grid=GRID, z=Z, d=D, heads=HEADS, text_length=TEXT_LENGTH),
        cfg_combine=E.CfgCombine(), scheduler_step=E.EulerStep(), pack_latents=E.PackLatents(),
        unpack_latents=E.UnpackLatents(GRID), vae_decoder=E.VaeDecoder(z=Z))


def sigmas():
    """The shifted flow-match schedule, one more than there are steps."""
    linear = np.linspace(1.0, 1.0 / STEPS, STEPS)
    shift = np.exp(0.6)
    return torch.tensor(np.append(shift / (shift + (1 / linear - 1)), 0.0), dtype=torch.float32)


@torch.no_grad()
def calls(seed=0):
    """Runs the whole pipeline; each module's arguments in its first call. Another seed: other image, text and noise."""
    nets, first = modules(), {}

    def run(name, *arguments):
        first.setdefault(name, list(arguments))
        return nets[name](*arguments)

    image = seeds.image(500 + seed, 1, 3, SIZE, SIZE).clamp(-1, 1)
    prefix = seeds.ids(510 + seed, (1, PREFIX), VOCABULARY)
    wanted, unwanted = (seeds.ids(s + seed, (1, SUFFIX), VOCABULARY) for s in (520, 530))
    noise = seeds.tensor(540 + seed, 1, Z, SIZE // 8, SIZE // 8)
    schedule = sigmas()
    condition = run("pack_latents", run("vae_encoder", image))
    embeds = run("vision_encoder", image)
    positive, negative = (run("text_encoder", prefix, embeds, suffix) for suffix in (wanted, unwanted))
    x = run("pack_latents", noise)
    for i in range(STEPS):
        time = run("time_embed", schedule[i:i + 1])
        towards, away = (run("mmdit", x, condition, text, time) for text in (positive, negative))
        x = run("scheduler_step", x, run("cfg_combine", towards, away), schedule[i:i + 1], schedule[i + 1:i + 2])
    run("vae_decoder", run("unpack_latents", x))
    return first
