"""Views of checkpoints: the names of saved objects, and what a program has of them."""

import os
import tempfile


def _module(tf, *names):
    made = tf.Module()
    for name in names:
        setattr(made, name, tf.Variable(1.0))
    return made


def what_both_have(tf, ask):
    with tempfile.TemporaryDirectory() as folder:
        shared = _module(tf, "v")
        saved = tf.train.Checkpoint(a=_module(tf, "v", "w"), b=[tf.Variable(0.0), shared], c=shared)
        view = tf.train.CheckpointView(saved.save(os.path.join(folder, "ckpt")))
        here = tf.train.Checkpoint(a=_module(tf, "v", "x"), b=[tf.Variable(0.0)])
        found, only_saved, only_here = view.diff(here)
        objects = tf.train.TrackableView(here)
        return {
            "names": sorted(view.children(0)),
            "of the list": sorted(view.children(view.children(0)["b"])),
            "shared": view.children(view.children(0)["b"])["1"] == view.children(0)["c"],
            "all": sorted(view.descendants()),
            "both": len(found),
            "matched": len(view.match(here)),
            "only saved": len(only_saved),
            "only here": [one is here.a.x for one in only_here],
            "children": sorted(objects.children(here)),
            "descendants": len(objects.descendants()),
            "root": objects.root is here,
            "not an object": ask(lambda: view.match(7)),
        }
