"""Classify texts: files in folders become a dataset, words become ids, and a Keras model trains on all replicas."""

import random
import tempfile
from pathlib import Path

import evenfeed as tf

WORDS = {
    "praise": ["brilliant", "charming", "lovely", "superb", "moving"],
    "complaint": ["dull", "clumsy", "tedious", "hollow", "awful"],
}
COMMON = ["the", "film", "was", "and", "its", "plot", "a", "cast", "truly", "story"]


def write_reviews(folder: Path, per_class: int = 200) -> None:
    """Write one file per review, in a folder per class."""
    source = random.Random(0)
    for name, words in WORDS.items():
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            review = source.choices(COMMON, k=12) + source.choices(words, k=3)
            source.shuffle(review)
            (folder / name / f"{number}.txt").write_text(" ".join(review).capitalize() + ".")


folder = Path(tempfile.mkdtemp(), "reviews")
write_reviews(folder)

train, check = tf.keras.utils.text_dataset_from_directory(
    str(folder), batch_size=32, seed=1, validation_split=0.2, subset="both"
)
print("classes:", train.class_names)

vectorize = tf.keras.layers.TextVectorization(max_tokens=1000, output_sequence_length=20)
vectorize.adapt(train.map(lambda text, _: text))
print("most frequent words:", [str(word) for word in vectorize.get_vocabulary()[2:7]])


def encoded(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Turn the words of each text into ids."""
    ids = dataset.map(lambda text, label: (vectorize(text), label))
    return ids.cache().prefetch(tf.data.AUTOTUNE)


strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(vectorize.vocabulary_size(), 16),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile(
        tf.keras.optimizers.Adam(0.03),
        tf.keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.0)],
    )

model.fit(encoded(train), validation_data=encoded(check), epochs=3, verbose=2)

score = model.predict(vectorize(["The plot was superb and its cast lovely"]), verbose=0)
print("praise" if score[0, 0] > 0 else "complaint")
