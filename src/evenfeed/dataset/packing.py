"""The method that packs rows of tokens into sequences of a fixed length."""

from typing import TYPE_CHECKING, Any

from evenfeed.core.arguments import whole_number, yes_or_no
from evenfeed.dataset.face import Face, dataset_of
from evenfeed.plan.packing import Pack, fills_of, lengths_of

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


class Packing(Face):
    """The method that packs rows."""

    __slots__ = ()

    def pack(
        self,
        length: Any,
        strategy: str = "first_fit",
        num_bins: int = 64,
        padding_values: Any = None,
        too_long: str = "split",
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Pack rows of tokens into sequences of a fixed length, with segment ids and positions.

        A row is a vector of tokens, or a tuple or dict of vectors. Each of them becomes a triple of vectors
        of the given length: the tokens; the segment ids, which number the rows of a sequence from 1 and are 0
        where it is padded; and the positions of the tokens in their rows, from 0. In a dict, the segment ids and
        positions of `inputs` are `inputs_segment_ids` and `inputs_positions`. Rows without tokens are left out.
        Not in TensorFlow.

        Args:
            length: The number of tokens in a sequence, or one for each component.
            strategy: `"first_fit"` keeps rows whole: each goes into the first sequence that has room, and what
                is left of a sequence is padded. `"concat"` joins all rows and cuts them into sequences, so only
                the last one is padded. All components of a row must have one length. A row that is cut
                becomes two segments, and the positions of the second start at 0.
            num_bins: For `"first_fit"`, how many sequences are filled at the same time, at most 1,024. If a row fits into none of
                them, the oldest is returned. More need less padding, and hold rows back for longer.
            padding_values: The value to pad with: a scalar of the component's dtype, or one for each
                component. By default 0, False or the empty string.
            too_long: What to do with a row that is longer than `length`: `"split"` cuts it into several rows,
                `"truncate"` drops the rest, `"error"` raises InvalidArgumentError.
            drop_remainder: Drop sequences that are not full when the data ends.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> rows = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2, 3], [4, 5], [6]]))
            >>> for tokens, segment_ids, positions in rows.pack(4):
            ...     print(tokens, segment_ids, positions)
            [1 2 3 6] [1 1 1 2] [0 1 2 0]
            [4 5 0 0] [1 1 0 0] [0 1 0 0]
            >>> [tokens.tolist() for tokens, _, _ in rows.pack(4, "concat")]
            [[1, 2, 3, 4], [5, 6, 0, 0]]
        """
        del name
        plan = Pack(
            self._plan,
            lengths_of(self._plan, length),
            strategy,
            whole_number(num_bins, "num_bins"),
            values=fills_of(self._plan, padding_values),
            too_long=too_long,
            drop_remainder=yes_or_no(drop_remainder, "drop_remainder"),
        )
        return dataset_of(plan)
