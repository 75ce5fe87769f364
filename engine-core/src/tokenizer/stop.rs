//! Stop strings: ends a text just before the first of them, wherever tokens are cut.

/// Watches a text that arrives in pieces for stop strings.
///
/// Of the text so far it holds back just the longest end that is the start of some stop string, so that nothing of a
/// stop string is ever shown and everything else is shown at once.
#[derive(Debug, Clone)]
pub struct StopFilter {
    stops: Vec<String>,
    /// The held end; shorter than the longest stop string.
    held: String,
}

/// What a piece of text led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopText {
    /// Text to show; more may come.
    More(String),
    /// The last text to show: a stop string follows it.
    Stopped(String),
}

impl StopFilter {
    /// A filter for `stops`, of which empty ones are ignored.
    pub fn new(stops: impl IntoIterator<Item = String>) -> Self {
        let stops = stops.into_iter().filter(|stop| !stop.is_empty()).collect();
        StopFilter { stops, held: String::new() }
    }

    /// Takes the next piece of text. When it completes a stop string, the text ends before the one that starts first.
    /// After [`StopText::Stopped`] the filter is as new.
    pub fn push(&mut self, piece: &str) -> StopText {
        self.held.push_str(piece);
        let text = &mut self.held;
        if let Some(at) = self.stops.iter().filter_map(|stop| text.find(stop.as_str())).min() {
            text.truncate(at);
            return StopText::Stopped(std::mem::take(text));
        }
        let hold = self.stops.iter().map(|stop| overlap(text, stop)).max().unwrap_or(0);
        let held = text.split_off(text.len() - hold);
        StopText::More(std::mem::replace(text, held))
    }

    /// Ends the text: gives what was held back.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Length of the longest end of `text` that is a proper start of `stop`, in bytes.
fn overlap(text: &str, stop: &str) -> usize {
    let starts = stop.char_indices().map(|(at, _)| at).rev();
    starts.into_iter().find(|&length| text.ends_with(&stop[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(stops: &[&str]) -> StopFilter {
        StopFilter::new(stops.iter().map(|stop| stop.to_string()))
    }

    /// Pieces shown for pieces pushed, and whether a stop string ended them.
    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let mut filter = filter(stops);
        let mut shown = Vec::new();
        for piece in pieces {
            match filter.push(piece) {
                StopText::More(text) => shown.push(text),
                StopText::Stopped(text) => {
                    shown.push(text);
                    return (shown, true);
                }
            }
        }
        shown.push(filter.finish());
        (shown, false)
    }

    #[test]
    fn stop_spread_over_pieces() {
        let (shown, stopped) = run(&["DEFGHIJ"], &["AB", "CDE", "FG", "H", "IJK"]);
        assert_eq!((shown.concat().as_str(), stopped), ("ABC", true));
        assert_eq!(shown, ["AB", "C", "", "", ""]);
    }

    #[test]
    fn stop_inside_a_piece() {
        assert_eq!(run(&[".."], &["a", "..."]), (vec!["a".into(), "".into()], true));
    }

    #[test]
    fn only_the_overlap_is_held() {
        let (shown, stopped) = run(&["\n\nUser:"], &["one\n", "\ntwo", "\n\nUs"]);
        assert_eq!(shown, ["one", "\n\ntwo", "", "\n\nUs"]);
        assert!(!stopped);
    }

    #[test]
    fn overlap_moves_along() {
        // The held "aa" is not the start of a stop any more once "aab" arrives, but its end is.
        let (shown, stopped) = run(&["aabx"], &["aa", "a", "b", "x"]);
        assert_eq!((shown.concat().as_str(), stopped), ("a", true));
    }

    #[test]
    fn earliest_of_several_stops() {
        assert_eq!(run(&["c", "bc"], &["abc"]), (vec!["a".into()], true));
    }

    #[test]
    fn no_stops_hold_nothing() {
        assert_eq!(run(&["", ""], &["a", "b"]).0, ["a", "b", ""]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_whole_text(
            stops in prop::collection::vec("[abé]{0,4}", 0..4),
            pieces in prop::collection::vec("[abcé]{0,4}", 0..10),
        ) {
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let real: Vec<&str> = stops.iter().copied().filter(|stop| !stop.is_empty()).collect();
            let (shown, stopped) = run(&stops, &pieces);

            // The text may only be judged as it arrives: the first piece that completes a stop ends it.
            let mut whole = String::new();
            let mut expected = None;
            for piece in &pieces {
                whole.push_str(piece);
                if let Some(at) = real.iter().filter_map(|stop| whole.find(stop)).min() {
                    expected = Some(whole[..at].to_owned());
                    break;
                }
            }
            prop_assert_eq!(stopped, expected.is_some());
            prop_assert_eq!(shown.concat(), expected.unwrap_or(whole));
        }

        #[test]
        fn holds_no_more_than_needed(
            stops in prop::collection::vec("[ab]{1,4}", 1..3),
            text in "[abc]{0,8}",
        ) {
            let mut filter = StopFilter::new(stops.clone());
            if let StopText::More(shown) = filter.push(&text) {
                let held = &text[shown.len()..];
                let needed = (0..=text.len())
                    .find(|&at| stops.iter().any(|stop| stop.starts_with(&text[at..])))
                    .unwrap_or(text.len());
                prop_assert_eq!(held, &text[needed..]);
            }
        }
    }
}
