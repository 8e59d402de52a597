"""Pack lines of tokens for a language model. With a mask of segment ids, attention gives what it gives for each line."""

import jax
import jax.numpy as jnp
import numpy as np

import evenfeed as tf

LENGTH, WIDTH, VOCABULARY = 64, 16, 256

lines = ["A rose is a rose.", "Once upon a time", "to be, or not to be", "Call me Ishmael.", "Hi"]


def tokenized(line: tf.Tensor) -> np.ndarray:
    """Return a token for each byte; a real program calls its tokenizer here."""
    return np.frombuffer(line.numpy(), np.uint8).astype(np.int32)


tokens = tf.TensorSpec([None], tf.int32)
rows = tf.data.Dataset.from_tensor_slices(lines).map(tokenized, output_signature=tokens)
packed = rows.pack(LENGTH).batch(2)

keys = jax.random.split(jax.random.key(0), 5)
embeddings = jax.random.normal(keys[0], [VOCABULARY, WIDTH])
places = jax.random.normal(keys[1], [LENGTH, WIDTH])
query, key, value = (jax.random.normal(k, [WIDTH, WIDTH]) for k in keys[2:])


@jax.jit
def attention(tokens: jax.Array, segment_ids: jax.Array, positions: jax.Array) -> jax.Array:
    """Return one layer of causal attention, in which a token sees the tokens of its own segment only."""
    x = embeddings[tokens] + places[positions]
    scores = (x @ query) @ jnp.swapaxes(x @ key, -1, -2) / jnp.sqrt(WIDTH)
    same = segment_ids[..., :, None] == segment_ids[..., None, :]
    earlier = jnp.tril(jnp.ones([tokens.shape[-1]] * 2, bool))
    weights = jax.nn.softmax(jnp.where(same & earlier, scores, -jnp.inf), axis=-1)
    return weights @ (x @ value)


expected = {}  # of each line alone
for row in rows:
    ids, positions = np.ones(len(row), np.int32), np.arange(len(row))
    expected[row.tobytes()] = attention(row, ids, positions)

found = 0
for batch in packed:
    outputs = attention(*batch)
    for row, ids, output in zip(batch[0], batch[1], outputs, strict=True):
        for segment in range(1, ids.max() + 1):
            inside = np.flatnonzero(ids == segment)
            alone = expected[np.asarray(row)[inside].tobytes()]
            np.testing.assert_allclose(output[inside], alone, rtol=1e-4, atol=1e-4)
            found += 1
    used = np.count_nonzero(batch[1]) / np.size(batch[1])
    print(f"sequences: {len(outputs)}, of which {used:.0%} is used")
assert found == len(lines)
print(f"{found} lines give the same alone and packed")
