"""The models whose training is compared: bench/training_models.h has the same ones, with the same
names of parameters."""
import torch
import torch.nn as nn
import torch.nn.functional as functional


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(784, 512), nn.Linear(512, 512)
        self.last = nn.Linear(512, 10)

    def loss(self, x, y):
        hidden = functional.relu(self.second(functional.relu(self.first(x))))
        return functional.cross_entropy(self.last(hidden), y)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.last = nn.Linear(64 * 12 * 12, 10)

    def loss(self, x, y):
        hidden = functional.relu(self.second(functional.relu(self.first(x))))
        return functional.cross_entropy(self.last(functional.max_pool2d(hidden, 2).flatten(1)), y)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask):
        batch, tokens, width = x.shape
        size = width // self.heads
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        scores = ((q @ k.transpose(-1, -2)) * size**-0.5).masked_fill(mask, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class CharGpt(nn.Module):
    vocabulary = 65

    def __init__(self, block, layers=4, heads=4, width=128):
        super().__init__()
        self.embedding = nn.Embedding(self.vocabulary, width)
        self.position = nn.Embedding(block, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)
        mask = torch.triu(torch.ones(block, block, dtype=torch.bool), 1)
        self.register_buffer("mask", mask, persistent=False)

    def loss(self, x, y):
        hidden = self.embedding(x) + self.position.weight
        for block in self.blocks:
            hidden = block(hidden, self.mask)
        logits = self.norm(hidden) @ self.embedding.weight.t()
        return functional.cross_entropy(logits.view(-1, self.vocabulary), y.view(-1))


def make_model(name, *gpt_sizes):
    """By the name that the programs of anneal use."""
    return CharGpt(*gpt_sizes) if name == "gpt" else {"mlp": Mlp, "conv": ConvNet}[name]()


def training_step(model, **how):
    """A function of a batch that trains once and answers the loss, as AdamW does it by `how`."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def random_batch(name, batch, block=0, *_):
    if name == "gpt":
        return tuple(torch.randint(CharGpt.vocabulary, (batch, block)) for _ in range(2))
    x = torch.rand(batch, 784) if name == "mlp" else torch.rand(batch, 1, 28, 28)
    return x, torch.randint(10, (batch,))
