//! Pending tokens of all sequences, cut into pieces that one pass can run.

use crate::kv::{KvCells, SeqId};
use crate::scratch::PassLimits;
use crate::tokenizer::TokenId;

/// A token's place on the three rotation axes: time, height, width. Text uses the first; all are equal for it.
pub type Position = [u32; 3];

/// One token to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchToken {
    /// Which token.
    pub id: TokenId,
    /// Whose it is.
    pub seq: SeqId,
    /// Where rope puts it. Says nothing of which cells it sees: that follows the order in the sequence.
    pub position: Position,
    /// Whether its logits are wanted.
    pub wants_logits: bool,
}

impl BatchToken {
    /// A token of text at `index` of its sequence.
    pub fn text(id: TokenId, seq: SeqId, index: u32, wants_logits: bool) -> BatchToken {
        BatchToken { id, seq, position: [index; 3], wants_logits }
    }
}

/// Cuts tokens into ubatches, each within the limits on tokens and on wanted logits, in order.
pub fn ubatches(tokens: &[BatchToken], limits: PassLimits) -> impl Iterator<Item = &[BatchToken]> {
    let mut rest = tokens;
    std::iter::from_fn(move || {
        let mut n_outputs = 0;
        let len = rest
            .iter()
            .take(limits.n_tokens as usize)
            .take_while(|token| {
                n_outputs += u32::from(token.wants_logits);
                n_outputs <= limits.n_outputs
            })
            .count();
        let (ubatch, after) = rest.split_at(len);
        rest = after;
        (!ubatch.is_empty()).then_some(ubatch)
    })
}

/// Inputs of one pass, as the arrays that ops index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassInputs {
    /// `[n_tokens]`.
    pub token_ids: Vec<u32>,
    /// `[n_tokens, 3]`.
    pub positions: Vec<u32>,
    /// For each group of layers.
    pub cells: Vec<CellInputs>,
    /// `[n_tokens, 2]`: range of the cells seen that the token sees; its own cell is the last.
    pub spans: Vec<u32>,
    /// Tokens whose logits are wanted.
    pub output_rows: Vec<u32>,
    /// Length of the longest sequence after this pass.
    pub longest: u32,
}

/// Cells of one group of layers in one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellInputs {
    /// `[n_tokens]`.
    pub written: Vec<u32>,
    /// Cells of each sequence of the pass, in order, one sequence after the other. In all groups a token has the same
    /// index.
    pub seen: Vec<u32>,
}

impl PassInputs {
    /// Gathers the inputs of `ubatch`. `cells` already holds a cell for each of its tokens, as the last ones of their
    /// sequences.
    pub fn gather(ubatch: &[BatchToken], cells: &KvCells) -> PassInputs {
        let groups = vec![CellInputs::default(); cells.groups().len()];
        let mut inputs = PassInputs { cells: groups, ..PassInputs::default() };
        let mut sequences: Vec<SequenceInPass> = Vec::new();
        for (row, token) in (0u32..).zip(ubatch) {
            let known = sequences.iter().position(|s| s.seq == token.seq);
            let index = known.unwrap_or_else(|| {
                sequences.push(inputs.add_sequence(token.seq, ubatch, cells));
                sequences.len() - 1
            });
            let sequence = &mut sequences[index];
            inputs.token_ids.push(token.id.0);
            inputs.positions.extend(token.position);
            for group in &mut inputs.cells {
                group.written.push(group.seen[sequence.next]);
            }
            sequence.next += 1;
            inputs.spans.extend([sequence.start as u32, sequence.next as u32]);
            if token.wants_logits {
                inputs.output_rows.push(row);
            }
        }
        inputs
    }

    fn add_sequence(
        &mut self,
        seq: SeqId,
        ubatch: &[BatchToken],
        cells: &KvCells,
    ) -> SequenceInPass {
        let len = cells.len(seq);
        let n_new = ubatch.iter().filter(|token| token.seq == seq).count();
        let n_before = len.checked_sub(n_new).expect("every token of the pass has its cell");
        let start = self.n_cells();
        for (inputs, group) in self.cells.iter_mut().zip(cells.groups()) {
            inputs.seen.extend(group.of(seq));
        }
        self.longest = self.longest.max(len as u32);
        SequenceInPass { seq, start, next: start + n_before }
    }

    /// The size of this pass.
    pub fn size(&self) -> PassLimits {
        PassLimits {
            n_tokens: self.token_ids.len() as u32,
            n_outputs: self.output_rows.len() as u32,
            n_cells: self.n_cells() as u32,
        }
    }

    /// Cells of all sequences of the pass, in each group.
    fn n_cells(&self) -> usize {
        self.cells.first().map_or(0, |group| group.seen.len())
    }
}

/// Where a sequence's cells lie among those seen, and how far its tokens have got.
struct SequenceInPass {
    seq: SeqId,
    start: usize,
    next: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::KvGroups;
    use crate::model::LayerConfig;

    fn token(seq: u32, index: u32, wants_logits: bool) -> BatchToken {
        BatchToken::text(TokenId(10 + index), SeqId(seq), index, wants_logits)
    }

    #[test]
    fn cut_by_tokens_and_by_outputs() {
        let limits = PassLimits { n_tokens: 3, n_outputs: 1, n_cells: 100 };
        let tokens = [false, false, false, true, true, false].map(|wants| token(0, 0, wants));
        let sizes: Vec<_> = ubatches(&tokens, limits).map(<[_]>::len).collect();
        assert_eq!(sizes, [3, 1, 2]);
    }

    fn kv_cells(windows: &[Option<u32>], n_ctx: u32) -> KvCells {
        let layers: Vec<_> =
            windows.iter().map(|&window| LayerConfig { window, rope: 0 }).collect();
        let limits = PassLimits { n_tokens: 3, n_outputs: 1, n_cells: n_ctx };
        KvCells::new(&KvGroups::of(&layers, limits), n_ctx)
    }

    #[test]
    fn two_sequences_in_one_pass() {
        let mut cells = kv_cells(&[None], 10);
        cells.extend(SeqId(0), 2).unwrap(); // two tokens of earlier passes
        cells.extend(SeqId(1), 1).unwrap();
        cells.extend(SeqId(0), 1).unwrap();
        cells.extend(SeqId(1), 1).unwrap();
        let pass = [token(0, 2, true), token(1, 0, false), token(1, 1, true)];
        let inputs = PassInputs::gather(&pass, &cells);
        assert_eq!(inputs.cells[0].seen, [0, 1, 3, 2, 4]);
        assert_eq!(inputs.spans, [0, 3, 3, 4, 3, 5]);
        assert_eq!(inputs.cells[0].written, [3, 2, 4]);
        assert_eq!(inputs.output_rows, [0, 2]);
        assert_eq!(inputs.longest, 3);
    }

    #[test]
    fn indices_are_the_same_with_a_window() {
        let mut cells = kv_cells(&[Some(2), None], 10);
        cells.extend(SeqId(0), 3).unwrap();
        cells.extend(SeqId(0), 2).unwrap();
        let pass = [token(0, 3, true), token(0, 4, true)];
        let inputs = PassInputs::gather(&pass, &cells);
        // The windowed group has four cells; the first token's went to the last.
        assert_eq!(inputs.cells[0].seen, [1, 1, 2, 3, 0]);
        assert_eq!(inputs.cells[0].written, [3, 0]);
        assert_eq!(inputs.cells[1].seen, [0, 1, 2, 3, 4]);
        assert_eq!(inputs.cells[1].written, [3, 4]);
        assert_eq!(inputs.spans, [0, 4, 0, 5]);
    }

    #[test]
    fn a_position_never_decides_what_is_seen() {
        let mut cells = kv_cells(&[None], 4);
        cells.extend(SeqId(0), 3).unwrap();
        // A picture's tokens share a time position; the text after it continues from the largest.
        let positions = [[5, 5, 5], [5, 5, 6], [7, 7, 7]];
        let pass = positions.map(|position| BatchToken { position, ..token(0, 0, false) });
        let inputs = PassInputs::gather(&pass, &cells);
        assert_eq!(inputs.spans, [0, 1, 0, 2, 0, 3]);
        assert_eq!(inputs.positions, [5, 5, 5, 5, 5, 6, 7, 7, 7]);
    }
}
