//! Tables.

use std::fmt;

/// A table of Markdown, all but its first column to the right.
pub(crate) struct Table {
    columns: usize,
    lines: String,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        let rule = "---:|".repeat(head.len() - 1);
        Self { columns: head.len(), lines: format!("| {} |\n|---|{rule}\n", head.join(" | ")) }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.columns, String::new());
        self.lines += &format!("| {} |\n", cells.join(" | "));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines)
    }
}

/// A figure of nanoseconds or millions; nothing for what was not measured.
pub(crate) fn ns(value: f64) -> String {
    match value {
        value if value.is_nan() => String::new(),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A ratio.
pub(crate) fn times(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:.2}") }
}
