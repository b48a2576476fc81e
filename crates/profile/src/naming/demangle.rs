//! Function names as written in the source, with bounded length.

use chokepoint_foreign::steers;

/// Maximum letters of a name. Names of templates may have any length.
pub(crate) const NAME_MAX: usize = 512;

/// The name as written in the source.
pub(crate) fn demangle(name: &str) -> String {
    // Versions of exported functions: "memcpy@@GLIBC_2.14".
    let name = name.split('@').next().filter(|bare| !bare.is_empty()).unwrap_or(name);
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return shorten(&format!("{rust:#}"));
    }
    if name.starts_with("_Z") && name.len() <= 8 * NAME_MAX {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        if let Some(text) = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok()) {
            return shorten(&text);
        }
    }
    shorten(name)
}

/// A name of bounded length, without characters that would break a line or a folded stack.
pub(crate) fn shorten(name: &str) -> String {
    name.chars().take(NAME_MAX).map(|letter| if steers(letter) || letter == ';' { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_written_as_in_the_source() {
        assert_eq!(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(demangle("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
        assert_eq!(demangle("_ZN2v88internal4Heap14CollectGarbageEv"), "v8::internal::Heap::CollectGarbage");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("plain"), "plain");
        assert_eq!(demangle("_Z"), "_Z");
        assert_eq!(shorten("a;b\nc"), "a b c");
    }

    proptest! {
        #[test]
        fn arbitrary_names_are_demangled(name in "(_Z|_R|_ZN)?[A-Z0-9a-zSN_.$@]{0,80}") {
            prop_assert!(demangle(&name).chars().count() <= NAME_MAX);
        }
    }
}
