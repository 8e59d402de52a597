"""Errors in TF_CONFIG are reported at once."""

import json

import pytest
from tests.saying import error_saying

import evenfeed as tf

FIX = """export TF_CONFIG='{"cluster": {"worker": ["host0:2222", "host1:2222"]}, …"""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[]", "TF_CONFIG must be a JSON object, but got '[]'."),
        ('{"task": 3}', 'The "task" of TF_CONFIG must be an object, but got 3.'),
        (
            '{"task": {"type": "worker", "index": "first"}}',
            """The "index" of this task must be an integer, but got 'first'.""",
        ),
    ],
)
def test_what_does_not_fit_is_shown(monkeypatch, text, what):
    monkeypatch.setenv("TF_CONFIG", text)
    with error_saying(ValueError, what, fix=FIX):
        tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id  # noqa: B018


@pytest.mark.parametrize("text", ["{", "", "worker"])
def test_what_is_not_json_is_shown(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with error_saying(json.JSONDecodeError, "TF_CONFIG is not JSON (…", fix=FIX):
        tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()
