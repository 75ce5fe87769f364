//! x
impl super::Preview<'_> {
    /// svg
    pub fn svg(&self) -> String {
        String::new()
    }
}
