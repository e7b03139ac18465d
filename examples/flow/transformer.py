"""A small transformer that predicts the next number of a sequence: what train.py and pipeline.py train.

The functions are traced: their arguments are tensors, or trees of tensors.
"""

import numpy

import phalanx.flow as flow

VOCABULARY, LENGTH, WIDTH, HEADS, INNER = 16, 8, 16, 2, 64


def first_weights(blocks):
    """Weights as NumPy arrays, drawn alike in each run."""
    draw = numpy.random.default_rng(1)

    def matrix(*shape):
        return (draw.standard_normal(shape) / shape[0] ** 0.5).astype(numpy.float32)

    def gain():
        return numpy.ones(WIDTH, numpy.float32)

    return {
        "embedding": {"token": matrix(VOCABULARY, WIDTH), "position": matrix(LENGTH, WIDTH)},
        "blocks": [{"gain1": gain(), "query": matrix(WIDTH, WIDTH), "key": matrix(WIDTH, WIDTH),
                    "value": matrix(WIDTH, WIDTH), "mix": matrix(WIDTH, WIDTH), "gain2": gain(),
                    "up": matrix(WIDTH, INNER), "down": matrix(INNER, WIDTH)} for _ in range(blocks)],
        "head": {"gain": gain(), "out": matrix(WIDTH, VOCABULARY)},
    }


def batch_of(step, size):
    """Sequences that go up by the same amount at each place: int32 of (size, LENGTH + 1)."""
    draw = numpy.random.default_rng([2, step])
    first, stride = draw.integers(0, VOCABULARY, (size, 1)), draw.integers(1, 4, (size, 1))
    return ((first + stride * numpy.arange(LENGTH + 1)) % VOCABULARY).astype(numpy.int32)


def normalize(x, gain):
    """Layer normalization."""
    x = x - x.mean(-1, True)
    return x * flow.rsqrt((x * x).mean(-1, True) + 1e-5) * gain


def attention(weights, x):
    """Causal self-attention of several heads."""
    batch, length, width = x.shape
    query, key, value = ((x @ weights[name]).reshape(batch, length, HEADS, width // HEADS)
                         for name in ("query", "key", "value"))
    scores = flow.einsum("bqhd,bkhd->bhqk", query, key) / (width // HEADS) ** 0.5
    scores = flow.where(flow.tril((length, length)), scores, -1e9)
    mixed = flow.einsum("bhqk,bkhd->bqhd", flow.softmax(scores), value)
    return mixed.reshape(batch, length, width) @ weights["mix"]


def embed(weights, inputs):
    return flow.take(weights["token"], inputs) + weights["position"]


def block(weights, x):
    x = x + attention(weights, normalize(x, weights["gain1"]))
    hidden = normalize(x, weights["gain2"]) @ weights["up"]
    return x + (hidden * flow.sigmoid(1.702 * hidden)) @ weights["down"]


def loss_at_head(weights, x, targets):
    """The mean of -log p(next token)."""
    logits = normalize(x, weights["gain"]) @ weights["out"]
    return -(flow.log_softmax(logits) * flow.one_hot(targets, VOCABULARY)).sum(-1).mean()


def loss_of(weights, tokens):
    """The loss of the whole model."""
    x = embed(weights["embedding"], tokens[:, :-1])
    for each in weights["blocks"]:
        x = block(each, x)
    return loss_at_head(weights["head"], x, tokens[:, 1:])


def descend(state, slopes, rate=0.1, momentum=0.9):
    """A step of gradient descent with momentum."""
    velocity = flow.tree_map(lambda v, g: momentum * v - rate * g, state["velocity"], slopes)
    return {"weights": flow.tree_map(lambda w, v: w + v, state["weights"], velocity), "velocity": velocity}


def state_of(weights):
    """Weights at rest: what descend() takes and gives."""
    return {"weights": weights, "velocity": flow.tree_map(numpy.zeros_like, weights)}
