pub(crate) fn html(_: &crate::results::Results) -> String {
    String::new()
}
