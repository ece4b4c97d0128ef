"""Write the folders of checkpoints/ next to this file: small models with random weights in Hugging Face's layout, and in
expected.safetensors of each some inputs and PyTorch's results.

The modules follow the definitions in transformers, with the same parameter names. Needs PyTorch 1.13 or later
(Debian: python3-torch), nothing else. The tests need only the written files; run `biome format --write` on them.
"""

import json
import math
import pathlib
import shutil
import struct

import torch
import torch.nn.functional as F
from torch import nn

checkpoints = pathlib.Path(__file__).parent / "checkpoints"
dtype_names = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32", torch.int64: "I64"}


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in sorted(tensors.items()):
        raw = bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist())
        header[name] = {
            "dtype": dtype_names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_folder(name, config, model, inputs, dtype=torch.float32, shards=1, extra=None, forget=(), rename=lambda name: name):
    """Draws weights, rounds them to the stored dtype, and writes them with the results of the rounded weights."""
    torch.manual_seed(sum(map(ord, name)))
    model.eval()
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if not value.is_floating_point():
                continue
            scale = 0.1 if value.dim() < 2 else 1.5 / math.sqrt(value[0].numel())
            drawn = torch.randn(value.shape) * scale
            if key.endswith("running_var"):
                drawn = drawn.abs() + 0.5
            elif value.dim() < 2 and not key.endswith("bias") and "running" not in key:
                drawn += 1
            value.copy_(drawn.to(dtype).to(torch.float32))
        expected = model(inputs)
    folder = checkpoints / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tensors = {
        rename(key): value.to(dtype) if value.is_floating_point() else value
        for key, value in model.state_dict().items()
        if key not in forget
    }
    tensors.update(extra or {})
    names = sorted(tensors)
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
    else:
        weight_map = {}
        for i in range(shards):
            own, file = names[i::shards], f"model-{i + 1:05}-of-{shards:05}.safetensors"
            write_safetensors(folder / file, {key: tensors[key] for key in own})
            weight_map.update({key: file for key in own})
        total = sum(value.numel() * value.element_size() for value in tensors.values())
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    # Images as [N, H, W, C], the layout of the models here.
    given = inputs.permute(0, 2, 3, 1) if inputs.dim() == 4 else inputs.to(torch.int32)
    write_safetensors(folder / "expected.safetensors", {"inputs": given, "logits": expected})
    print(name, sum(file.stat().st_size for file in folder.iterdir()), "bytes")


# Llama: transformers' modeling_llama.py


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon))


def inverse_frequencies(config, head_dim):
    frequencies = 1.0 / config["rope_theta"] ** (torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    scaling = config.get("rope_scaling") or {"rope_type": "default"}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "linear":
        return frequencies / scaling["factor"]
    if kind == "llama3":
        low_length = scaling["original_max_position_embeddings"] / scaling["low_freq_factor"]
        high_length = scaling["original_max_position_embeddings"] / scaling["high_freq_factor"]
        lengths = 2 * math.pi / frequencies
        smooth = (scaling["original_max_position_embeddings"] / lengths - scaling["low_freq_factor"]) / (
            scaling["high_freq_factor"] - scaling["low_freq_factor"]
        )
        between = (1 - smooth) * frequencies / scaling["factor"] + smooth * frequencies
        stretched = torch.where(lengths > low_length, frequencies / scaling["factor"], frequencies)
        return torch.where((lengths <= low_length) & (lengths >= high_length), between, stretched)
    assert kind == "default"
    return frequencies


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, config, input_bias, output_bias):
        super().__init__()
        self.heads, self.groups = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = config.get("head_dim") or config["hidden_size"] // self.heads
        self.frequencies = inverse_frequencies(config, self.head_dim)
        width = config["hidden_size"]
        self.q_proj = nn.Linear(width, self.heads * self.head_dim, bias=input_bias)
        self.k_proj = nn.Linear(width, self.groups * self.head_dim, bias=input_bias)
        self.v_proj = nn.Linear(width, self.groups * self.head_dim, bias=input_bias)
        self.o_proj = nn.Linear(self.heads * self.head_dim, width, bias=output_bias)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            projection(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        angles = torch.outer(torch.arange(length, dtype=torch.float64), self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().float(), angles.sin().float()
        q, k = (each * cos + rotate_half(each) * sin for each in (q, k))
        k, v = (each.repeat_interleave(self.heads // self.groups, dim=1) for each in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1))


class LlamaMlp(nn.Module):
    def __init__(self, width, hidden, bias):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=bias)
        self.up_proj = nn.Linear(width, hidden, bias=bias)
        self.down_proj = nn.Linear(hidden, width, bias=bias)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, config, input_bias, output_bias):
        super().__init__()
        width, epsilon = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn = LlamaAttention(config, input_bias, output_bias)
        self.mlp = LlamaMlp(width, config["intermediate_size"], config.get("mlp_bias", False))
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(width, epsilon), RmsNorm(width, epsilon)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    def __init__(self, config, input_bias, output_bias):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        layers = (LlamaLayer(config, input_bias, output_bias) for _ in range(config["num_hidden_layers"]))
        self.layers = nn.ModuleList(layers)
        self.norm = RmsNorm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class LlamaForCausalLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        bias = config.get("attention_bias", False)
        self.model = LlamaModel(config, bias or config["model_type"] == "qwen2", bias)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config["tie_word_embeddings"]:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


def tokens(vocabulary, shape, seed):
    return torch.randint(0, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


llama = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "bos_token_id": 1,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 64,
    "num_hidden_layers": 2,
    "use_cache": True,
    "torch_dtype": "float32",
}
config = {
    **llama,
    "vocab_size": 29,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "rope_scaling": {"type": "linear", "factor": 2.5},
    "tie_word_embeddings": True,
}
write_folder("llama-tied", config, LlamaForCausalLM(config), tokens(29, (2, 9), 1), forget=["lm_head.weight"])
config = {
    **llama,
    "torch_dtype": "bfloat16",
    "vocab_size": 31,
    "hidden_size": 12,
    "head_dim": 8,
    "intermediate_size": 20,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100.0,
    # In 30 positions the four frequencies make 4.8, 1.5, 0.48 and 0.15 turns, so that each branch of the formula is used.
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 0.3,
        "high_freq_factor": 3.0,
        "original_max_position_embeddings": 30,
    },
    "attention_bias": True,
    "mlp_bias": True,
    "tie_word_embeddings": False,
}
write_folder("llama-grouped", config, LlamaForCausalLM(config), tokens(31, (2, 40), 2), dtype=torch.bfloat16, shards=3)
config = {
    **llama,
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "torch_dtype": "float16",
    "vocab_size": 23,
    "hidden_size": 12,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "tie_word_embeddings": False,
}
write_folder("qwen2", config, LlamaForCausalLM(config), tokens(23, (1, 12), 3), dtype=torch.float16)


# GPT-2: transformers' modeling_gpt2.py


class Conv1D(nn.Module):
    def __init__(self, numbers_in, numbers_out):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(numbers_in, numbers_out)), nn.Parameter(torch.empty(numbers_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, self.heads = config["n_embd"], config["n_head"]
        self.c_attn, self.c_proj = Conv1D(width, 3 * width), Conv1D(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Gpt2Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, hidden = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
        self.c_fc, self.c_proj = Conv1D(width, hidden), Conv1D(hidden, width)

    def forward(self, x):
        x = self.c_fc(x)
        x = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))
        return self.c_proj(x)


class Gpt2Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        norms = (nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"]) for _ in range(2))
        self.ln_1, self.ln_2 = norms
        self.attn, self.mlp = Gpt2Attention(config), Gpt2Mlp(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config["vocab_size"], config["n_embd"])
        self.wpe = nn.Embedding(config["n_positions"], config["n_embd"])
        self.h = nn.ModuleList(Gpt2Block(config) for _ in range(config["n_layer"]))
        self.ln_f = nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class Gpt2LmHeadModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = Gpt2Model(config)
        self.lm_head = nn.Linear(config["n_embd"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", True):
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        return self.lm_head(self.transformer(tokens))


gpt2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "attn_pdrop": 0.1,
    "n_ctx": 12,
    "n_embd": 12,
    "n_head": 3,
    "n_layer": 2,
    "n_positions": 12,
    "layer_norm_epsilon": 1e-5,
    "vocab_size": 27,
}
# As in the published checkpoint: only the body, with masks.
mask = torch.ones(12, 12, dtype=torch.float32).tril().reshape(1, 1, 12, 12)
write_folder(
    "gpt2",
    gpt2,
    Gpt2LmHeadModel(gpt2),
    tokens(27, (2, 10), 4),
    extra={f"h.{layer}.attn.bias": mask for layer in range(2)},
    forget=["lm_head.weight"],
    rename=lambda name: name.replace("transformer.", ""),
)
config = {**gpt2, "n_layer": 1, "n_inner": 20, "tie_word_embeddings": False, "torch_dtype": "float16"}
write_folder("gpt2-untied", config, Gpt2LmHeadModel(config), tokens(27, (1, 12), 5), dtype=torch.float16)


# BERT and ViT: transformers' modeling_bert.py and modeling_vit.py


class SelfAttention(nn.Module):
    def __init__(self, width, heads, bias=True):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=bias) for _ in range(3))

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = (
            projection(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        if mask is not None:
            scores = scores + (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)


class DenseAndNorm(nn.Module):
    def __init__(self, numbers_in, numbers_out, epsilon):
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(numbers_in, numbers_out), nn.LayerNorm(numbers_out, eps=epsilon)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


def modules(**children):
    parent = nn.Module()
    for name, child in children.items():
        parent.add_module(name, child)
    return parent


class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, hidden, epsilon = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        own = SelfAttention(width, config["num_attention_heads"])
        self.attention = modules(self=own, output=DenseAndNorm(width, width, epsilon))
        self.intermediate = modules(dense=nn.Linear(width, hidden))
        self.output = DenseAndNorm(hidden, width, epsilon)

    def forward(self, x, mask):
        x = self.attention.output(self.attention._modules["self"](x, mask), x)
        return self.output(F.gelu(self.intermediate.dense(x)), x)


class BertModel(nn.Module):
    def __init__(self, config, pooler):
        super().__init__()
        width = config["hidden_size"]
        self.embeddings = modules(
            word_embeddings=nn.Embedding(config["vocab_size"], width),
            position_embeddings=nn.Embedding(config["max_position_embeddings"], width),
            token_type_embeddings=nn.Embedding(config["type_vocab_size"], width),
            LayerNorm=nn.LayerNorm(width, eps=config["layer_norm_eps"]),
        )
        self.embeddings.register_buffer("position_ids", torch.arange(config["max_position_embeddings"])[None])
        self.encoder = modules(layer=nn.ModuleList(BertLayer(config) for _ in range(config["num_hidden_layers"])))
        if pooler:
            self.pooler = modules(dense=nn.Linear(width, width))
        self.padding = config["pad_token_id"]

    def forward(self, inputs):
        tokens, segments = (inputs[:, 0], inputs[:, 1]) if inputs.dim() == 3 else (inputs, torch.zeros_like(inputs))
        places = self.embeddings.position_embeddings(torch.arange(tokens.shape[1]))
        x = self.embeddings.word_embeddings(tokens) + self.embeddings.token_type_embeddings(segments) + places
        x = self.embeddings.LayerNorm(x)
        for layer in self.encoder.layer:
            x = layer(x, tokens != self.padding)
        return x


class BertForMaskedLm(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, vocabulary = config["hidden_size"], config["vocab_size"]
        self.bert = BertModel(config, pooler=False)
        norm = nn.LayerNorm(width, eps=config["layer_norm_eps"])
        decoder = nn.Linear(width, vocabulary)
        predictions = modules(transform=modules(dense=nn.Linear(width, width), LayerNorm=norm), decoder=decoder)
        decoder.weight = self.bert.embeddings.word_embeddings.weight
        predictions.register_parameter("bias", decoder.bias)
        self.cls = modules(predictions=predictions)

    def forward(self, inputs):
        head = self.cls.predictions
        return head.decoder(head.transform.LayerNorm(F.gelu(head.transform.dense(self.bert(inputs)))))


class BertForSequenceClassification(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.bert = BertModel(config, pooler=True)
        self.classifier = nn.Linear(config["hidden_size"], len(config["id2label"]))

    def forward(self, inputs):
        return self.classifier(torch.tanh(self.bert.pooler.dense(self.bert(inputs)[:, 0])))


bert = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 12,
    "intermediate_size": 14,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 10,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": 21,
}
rows = tokens(20, (3, 9), 6) + 1
rows[1, 6:] = 0
# As in published checkpoints: norms with their old names, and extra tensors from training.
config = {**bert, "architectures": ["BertForMaskedLM"]}
write_folder(
    "bert-tokens",
    config,
    BertForMaskedLm(config),
    rows,
    extra={"cls.seq_relationship.weight": torch.randn(2, 12), "bert.pooler.dense.weight": torch.randn(12, 12)},
    rename=lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"),
)
segments = (torch.arange(9)[None] > torch.tensor([[3], [2], [7]])).long()
labels = {str(label): f"LABEL_{label}" for label in range(4)}
config = {**bert, "architectures": ["BertForSequenceClassification"], "id2label": labels, "torch_dtype": "float16"}
inputs = torch.stack((rows, segments), dim=1)
write_folder("bert-classes", config, BertForSequenceClassification(config), inputs, dtype=torch.float16, shards=2)
config = {**bert, "architectures": ["BertModel"], "num_hidden_layers": 1}
write_folder("bert-states", config, BertModel(config, pooler=True), rows)


class VitLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, hidden, epsilon = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        own = SelfAttention(width, config["num_attention_heads"], config["qkv_bias"])
        self.attention = modules(attention=own, output=modules(dense=nn.Linear(width, width)))
        self.intermediate = modules(dense=nn.Linear(width, hidden))
        self.output = modules(dense=nn.Linear(hidden, width))
        self.layernorm_before, self.layernorm_after = (nn.LayerNorm(width, eps=epsilon) for _ in range(2))

    def forward(self, x):
        x = x + self.attention.output.dense(self.attention.attention(self.layernorm_before(x)))
        return x + self.output.dense(F.gelu(self.intermediate.dense(self.layernorm_after(x))))


class VitForImageClassification(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, patch, (height, length) = config["hidden_size"], config["patch_size"], config["image_size"]
        patches = nn.Conv2d(config["num_channels"], width, kernel_size=patch, stride=patch)
        embeddings = modules(patch_embeddings=modules(projection=patches))
        embeddings.register_parameter("cls_token", nn.Parameter(torch.empty(1, 1, width)))
        number = (height // patch) * (length // patch)
        embeddings.register_parameter("position_embeddings", nn.Parameter(torch.empty(1, number + 1, width)))
        layers = nn.ModuleList(VitLayer(config) for _ in range(config["num_hidden_layers"]))
        norm = nn.LayerNorm(width, eps=config["layer_norm_eps"])
        self.vit = modules(embeddings=embeddings, encoder=modules(layer=layers), layernorm=norm)
        self.classifier = nn.Linear(width, len(config["id2label"]))

    def forward(self, images):
        embeddings = self.vit.embeddings
        x = embeddings.patch_embeddings.projection(images).flatten(2).transpose(1, 2)
        x = torch.cat((embeddings.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + embeddings.position_embeddings
        for layer in self.vit.encoder.layer:
            x = layer(x)
        return self.classifier(self.vit.layernorm(x)[:, 0])


config = {
    "architectures": ["ViTForImageClassification"],
    "model_type": "vit",
    "hidden_act": "gelu",
    "hidden_size": 12,
    "id2label": labels,
    "image_size": [8, 12],
    "intermediate_size": 14,
    "layer_norm_eps": 1e-12,
    "num_attention_heads": 2,
    "num_channels": 3,
    "num_hidden_layers": 2,
    "patch_size": 4,
    "qkv_bias": False,
}
images = torch.randn((2, 3, 8, 12), generator=torch.Generator().manual_seed(7))
write_folder("vit", config, VitForImageClassification(config), images)


# ResNet: transformers' modeling_resnet.py


class Convolution(nn.Module):
    def __init__(self, channels_in, channels_out, size, stride=1, activation=True):
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, size, stride=stride, padding=size // 2, bias=False)
        self.normalization = nn.BatchNorm2d(channels_out)
        self.activation = activation

    def forward(self, x):
        x = self.normalization(self.convolution(x))
        return F.relu(x) if self.activation else x


class ResNetBlock(nn.Module):
    def __init__(self, kind, channels_in, channels_out, stride):
        super().__init__()
        inner = channels_out // 4
        layers = {
            "basic": lambda: (
                Convolution(channels_in, channels_out, 3, stride),
                Convolution(channels_out, channels_out, 3, activation=False),
            ),
            "bottleneck": lambda: (
                Convolution(channels_in, inner, 1),
                Convolution(inner, inner, 3, stride),
                Convolution(inner, channels_out, 1, activation=False),
            ),
        }
        self.layer = nn.Sequential(*layers[kind]())
        if channels_in != channels_out or stride != 1:
            self.shortcut = Convolution(channels_in, channels_out, 1, stride, activation=False)

    def forward(self, x):
        return F.relu(self.layer(x) + (self.shortcut(x) if hasattr(self, "shortcut") else x))


class ResNetForImageClassification(nn.Module):
    def __init__(self, config):
        super().__init__()
        stages, before = [], config["embedding_size"]
        for stage, (width, depth) in enumerate(zip(config["hidden_sizes"], config["depths"])):
            stride = 2 if stage > 0 or config["downsample_in_first_stage"] else 1
            layers = [
                ResNetBlock(config["layer_type"], before if i == 0 else width, width, stride if i == 0 else 1)
                for i in range(depth)
            ]
            stages.append(modules(layers=nn.Sequential(*layers)))
            before = width
        stem = modules(embedder=Convolution(config["num_channels"], config["embedding_size"], 7, 2))
        self.resnet = modules(embedder=stem, encoder=modules(stages=nn.ModuleList(stages)))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(before, len(config["id2label"])))

    def forward(self, images):
        x = F.max_pool2d(self.resnet.embedder.embedder(images), 3, stride=2, padding=1)
        for stage in self.resnet.encoder.stages:
            x = stage.layers(x)
        return self.classifier(F.adaptive_avg_pool2d(x, 1))


resnet = {
    "architectures": ["ResNetForImageClassification"],
    "model_type": "resnet",
    "hidden_act": "relu",
    "id2label": labels,
    "num_channels": 3,
}
images = torch.randn((2, 3, 19, 15), generator=torch.Generator().manual_seed(8))
config = {
    **resnet,
    "depths": [1, 2],
    "downsample_in_first_stage": False,
    "embedding_size": 5,
    "hidden_sizes": [8, 12],
    "layer_type": "bottleneck",
}
write_folder("resnet-bottleneck", config, ResNetForImageClassification(config), images)
config = {
    **resnet,
    "depths": [2, 1],
    "downsample_in_first_stage": True,
    "embedding_size": 4,
    "hidden_sizes": [4, 6],
    "layer_type": "basic",
    "torch_dtype": "bfloat16",
}
images = images[:1, :, :, :14]
write_folder("resnet-basic", config, ResNetForImageClassification(config), images, dtype=torch.bfloat16, shards=2)
