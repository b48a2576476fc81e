//! Medians, ranges and ratios of interleaved runs, and the table.

use std::fmt::Write;

/// One column: the runs of each generator, round by round.
pub(crate) struct Column {
    title: String,
    runs: Vec<Vec<f64>>,
}

impl Column {
    pub(crate) fn new(title: &str, tools: usize) -> Self {
        Self { title: title.to_owned(), runs: vec![Vec::new(); tools] }
    }

    pub(crate) fn add(&mut self, tool: usize, value: f64) {
        self.runs[tool].push(value);
    }

    /// Median of the rounds' ratios to the first generator: what one disturbed round changes is in both of its runs.
    fn ratio(&self, tool: usize) -> Option<f64> {
        let ratios: Vec<f64> = self.runs[tool].iter().zip(&self.runs[0]).map(|(own, first)| own / first).collect();
        median(&ratios)
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        len if len % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The table in Markdown: requests per CPU-second in thousands as median, range and ratio to the first row; memory as it is.
pub(crate) fn table(names: &[&str], columns: &[Column], memory: &Column) -> String {
    let mut out = String::from("| |");
    for column in columns.iter().chain([memory]) {
        let _ = write!(out, " {} |", column.title);
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(columns.len() + 1));
    out.push('\n');
    for (tool, name) in names.iter().enumerate() {
        let _ = write!(out, "| {name} |");
        for column in columns {
            let runs = &column.runs[tool];
            let (low, high) = runs.iter().fold((f64::MAX, 0f64), |(low, high), run| (low.min(*run), high.max(*run)));
            match (median(runs), column.ratio(tool)) {
                (Some(median), Some(ratio)) => {
                    let _ = write!(out, " {:.1}k ({:.1}-{:.1}), {ratio:.3} |", median / 1e3, low / 1e3, high / 1e3);
                }
                _ => out.push_str(" |"),
            }
        }
        let _ = writeln!(out, " {:.1} |", median(&memory.runs[tool]).unwrap_or(0.0));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_medians_ranges_and_paired_ratios() {
        let mut column = Column::new("c", 2);
        for (first, second) in [(100e3, 90e3), (200e3, 180e3), (50e3, 25e3)] {
            column.add(0, first);
            column.add(1, second);
        }
        let mut memory = Column::new("m", 2);
        memory.add(0, 1.5);
        memory.add(1, 2.5);
        let table = table(&["bare", "x"], &[column], &memory);
        assert!(table.contains("| bare | 100.0k (50.0-200.0), 1.000 | 1.5 |"), "{table}");
        assert!(table.contains("| x | 90.0k (25.0-180.0), 0.900 | 2.5 |"), "{table}");
        assert_eq!((median(&[]), median(&[4.0, 2.0])), (None, Some(3.0)));
    }
}
