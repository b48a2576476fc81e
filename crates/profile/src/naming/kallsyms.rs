//! Names of kernel addresses, from `/proc/kallsyms`.

/// Maximum number of symbols; a distribution kernel with all its modules has about 300,000.
const SYMBOLS_MAX: usize = 4 << 20;
/// An address further than this behind the last symbol has no name.
const REACH: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Kallsyms<'a> {
    /// Address, whether it is global, name and module, in address order; of several at one address the best comes last.
    functions: Vec<(u64, bool, &'a str, &'a str)>,
    /// True if all addresses are zero: the kernel hides them from this user.
    pub(crate) hidden: bool,
}

impl<'a> Kallsyms<'a> {
    /// Parses lines such as "ffffffff81000000 T name\t[module]". Others are skipped.
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut kallsyms = Self::default();
        for line in text.lines().take(SYMBOLS_MAX) {
            let mut fields = line.split_ascii_whitespace();
            let Some(address) = fields.next().and_then(|field| u64::from_str_radix(field, 16).ok()) else { continue };
            let (Some(kind @ ("t" | "T" | "w" | "W")), Some(name)) = (fields.next(), fields.next()) else { continue };
            let module = fields.next().map_or("kernel", |module| module.trim_matches(['[', ']']));
            if address == 0 {
                kallsyms.hidden = true;
            } else {
                kallsyms.functions.push((address, kind == "T", name, module));
            }
        }
        kallsyms.hidden &= kallsyms.functions.is_empty();
        kallsyms.functions.sort_by_key(|(address, global, name, _)| (*address, *global, std::cmp::Reverse(underscores(name))));
        kallsyms
    }

    /// Name and module of the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<(&'a str, &'a str)> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, _, name, module) = self.functions.get(behind.checked_sub(1)?)?;
        (behind < self.functions.len() || address - start < REACH).then_some((*name, *module))
    }
}

/// Number of leading underscores. Of several names for one address people know the plain one.
pub(crate) fn underscores(name: &str) -> usize {
    name.len() - name.trim_start_matches('_').len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T __alias
ffffffff81000000 T plain
ffffffff81000000 t local
ffffffff81000100 D data
ffffffff81000200 t second
ffffffffc0001000 t in_module\t[nf_conntrack]
garbage
";

    #[test]
    fn functions_are_found_with_their_modules() {
        let kallsyms = Kallsyms::parse(TEXT);
        assert_eq!(kallsyms.find(0xffff_ffff_8100_0000), Some(("plain", "kernel")));
        assert_eq!(kallsyms.find(0xffff_ffff_8100_01ff), Some(("plain", "kernel")));
        assert_eq!(kallsyms.find(0xffff_ffff_8100_0200), Some(("second", "kernel")));
        assert_eq!(kallsyms.find(0xffff_ffff_c000_1001), Some(("in_module", "nf_conntrack")));
        assert_eq!(kallsyms.find(0xffff_ffff_c000_1000 + REACH), None);
        assert_eq!(kallsyms.find(17), None);
        assert!(!kallsyms.hidden);
    }

    #[test]
    fn hidden_addresses_differ_from_missing_ones() {
        assert!(Kallsyms::parse("0000000000000000 T a\n0000000000000000 t b\n").hidden);
        assert!(!Kallsyms::parse("").hidden);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed(text in "[0-9a-f]{0,17} ?[tTD]? ?[a-z_]{0,5}\n?[\\PC\n]{0,60}", address: u64) {
            Kallsyms::parse(&text).find(address);
        }
    }
}
