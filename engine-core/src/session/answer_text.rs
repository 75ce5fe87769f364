//! Text of an answer out of its tokens.

use super::FinishReason;
use crate::request::ValidRequest;
use crate::tokenizer::{ControlText, StopFilter, StopText, TextStream, TokenId, Tokenizer};

/// Text of an answer: whole characters only, up to the first stop string.
pub(super) struct AnswerText {
    stream: TextStream,
    stop: StopFilter,
}

impl AnswerText {
    pub(super) fn new(request: &ValidRequest) -> AnswerText {
        AnswerText {
            stream: TextStream::new(request.text_start, ControlText::Hide),
            stop: StopFilter::new(request.stop.iter().cloned()),
        }
    }

    /// Text that became certain with one more token, and whether that ends the answer.
    pub(super) fn push(
        &mut self,
        tokenizer: &Tokenizer,
        id: TokenId,
    ) -> (String, Option<FinishReason>) {
        let text = self.stream.push(tokenizer, id);
        self.filter(&text)
    }

    /// The rest that was held back.
    pub(super) fn finish(&mut self) -> String {
        let rest = self.stream.finish();
        let (text, stopped) = self.filter(&rest);
        if stopped.is_some() { text } else { text + &self.stop.finish() }
    }

    fn filter(&mut self, text: &str) -> (String, Option<FinishReason>) {
        match self.stop.push(text) {
            StopText::More(text) => (text, None),
            StopText::Stopped(text) => (text, Some(FinishReason::Stop)),
        }
    }
}
