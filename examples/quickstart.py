"""The ten lines of the README: a model becomes a file, and the file runs."""

import numpy as np
import torch

import rushlight as rl

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
x = torch.randn(3, 4)

program = rl.export(model, (x,))  # checked against PyTorch
program.save("model.pte")

module = rl.load("model.pte")  # needs no PyTorch from here on
print(module.signature("forward"))
print(np.abs(module(x.numpy()) - model(x).detach().numpy()).max() < 1e-6)
