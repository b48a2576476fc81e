//! Medians, ranges and ratios of interleaved runs, and the table.

use std::fmt::Write;

use chokepoint_statistics::median;

/// One column: the runs of each generator, by round.
pub(crate) struct Column {
    title: String,
    runs: Vec<Vec<f64>>,
    /// For each run, the run of the first generator that it is paired with.
    first: Vec<Vec<f64>>,
}

impl Column {
    pub(crate) fn new(title: &str, tools: usize) -> Self {
        Self { title: title.to_owned(), runs: vec![Vec::new(); tools], first: vec![Vec::new(); tools] }
    }

    /// Adds a run without a simultaneous one of the first generator: runs of the same round are pairs.
    pub(crate) fn add(&mut self, tool: usize, value: f64) {
        self.runs[tool].push(value);
    }

    /// Adds a run and the simultaneous run of the first generator.
    pub(crate) fn add_pair(&mut self, tool: usize, value: f64, first: f64) {
        self.runs[tool].push(value);
        self.first[tool].push(first);
        self.runs[0].push(first);
    }

    /// The ratio of each pair: a disturbed round affects both of its runs.
    fn ratios(&self, tool: usize) -> Vec<f64> {
        let first = if self.first[tool].is_empty() { &self.runs[0] } else { &self.first[tool] };
        self.runs[tool].iter().zip(first).map(|(own, first)| own / first).collect()
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, 0f64), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// The table in Markdown: thousands of requests per CPU-second as median and range, the ratio to the first row, and memory
/// if it was measured.
pub(crate) fn table(names: &[&str], columns: &[Column], memory: Option<&Column>) -> String {
    let mut out = String::from("| |");
    for column in columns.iter().chain(memory) {
        let _ = write!(out, " {} |", column.title);
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(columns.len() + usize::from(memory.is_some())));
    out.push('\n');
    for (tool, name) in names.iter().enumerate() {
        let _ = write!(out, "| {name} |");
        for column in columns {
            let runs = &column.runs[tool];
            let ratios = column.ratios(tool);
            match (median(runs), median(&ratios)) {
                (Some(median), Some(ratio)) => {
                    let ((low, high), (lowest, highest)) = (range(runs), range(&ratios));
                    let _ = write!(out, " {:.1}k ({:.1}-{:.1}), {ratio:.3}", median / 1e3, low / 1e3, high / 1e3);
                    let _ = if tool == 0 { write!(out, " |") } else { write!(out, " ({lowest:.3}-{highest:.3}) |") };
                }
                _ => out.push_str(" |"),
            }
        }
        if let Some(memory) = memory {
            let (low, high) = range(&memory.runs[tool]);
            let _ = write!(out, " {:.1} ({low:.1}-{high:.1}) |", median(&memory.runs[tool]).unwrap_or(0.0));
        }
        out.push('\n');
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
        for (first, second) in [(1.5, 2.5), (1.2, 2.5), (2.0, 2.8)] {
            memory.add(0, first);
            memory.add(1, second);
        }
        let table = table(&["bare", "x"], &[column], Some(&memory));
        assert!(table.contains("| bare | 100.0k (50.0-200.0), 1.000 | 1.5 (1.2-2.0) |"), "{table}");
        assert!(table.contains("| x | 90.0k (25.0-180.0), 0.900 (0.500-0.900) | 2.5 (2.5-2.8) |"), "{table}");
    }

    #[test]
    fn simultaneous_runs_are_pairs() {
        let mut column = Column::new("c", 3);
        for (tool, own, first) in [(1, 90.0, 100.0), (2, 30.0, 60.0), (1, 45.0, 50.0), (2, 50.0, 100.0)] {
            column.add_pair(tool, own, first);
        }
        assert_eq!((column.ratios(1), column.ratios(2), column.ratios(0)), (vec![0.9, 0.9], vec![0.5, 0.5], vec![1.0; 4]));
    }
}
