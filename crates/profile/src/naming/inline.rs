//! Inlined functions: their names from debugging information (DWARF), within limits of size and time.

use std::time::Instant;

use addr2line::Context;
use addr2line::gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use serde::{Deserialize, Serialize};

use crate::unwinding::sections::NamedSections;

/// Maximum nesting of inlined functions.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Inlined {
    /// The file has no debugging information.
    #[default]
    None,
    /// It has so many bytes: too many.
    TooLarge(u64),
    /// There was too little time.
    Late,
    /// For each address the inlined functions as mangled names, outermost first.
    Found(Vec<Vec<String>>),
}

/// Finds the functions inlined at addresses of a file, until time runs out. `bytes_max`: of its debugging information.
pub(crate) fn inlined(file: &dyn NamedSections, addresses: &[u64], until: Instant, bytes_max: u64) -> Inlined {
    let size = |id: SectionId| file.section_size(id.name());
    if size(SectionId::DebugInfo).is_none_or(|size| size == 0) {
        return Inlined::None;
    }
    let wanted = [
        SectionId::DebugAbbrev,
        SectionId::DebugAddr,
        SectionId::DebugAranges,
        SectionId::DebugInfo,
        SectionId::DebugLine,
        SectionId::DebugLineStr,
        SectionId::DebugRanges,
        SectionId::DebugRngLists,
        SectionId::DebugStr,
        SectionId::DebugStrOffsets,
    ];
    let all = wanted.iter().filter_map(|id| size(*id)).fold(0, u64::saturating_add);
    if all > bytes_max {
        return Inlined::TooLarge(all);
    }
    if Instant::now() >= until {
        return Inlined::Late;
    }
    let load = |id: SectionId| {
        let bytes = if wanted.contains(&id) { file.section(id.name(), bytes_max) } else { None };
        Ok::<Vec<u8>, std::convert::Infallible>(bytes.unwrap_or_default())
    };
    let Ok(sections) = DwarfSections::load(load);
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let Ok(context) = Context::from_dwarf(dwarf) else { return Inlined::None };
    let mut found = Vec::with_capacity(addresses.len());
    for address in addresses {
        if Instant::now() >= until {
            break;
        }
        found.push(names(&context, *address));
    }
    if found.is_empty() {
        return Inlined::Late;
    }
    // Addresses that there was no time for count as having no inlined functions.
    found.resize(addresses.len(), Vec::new());
    Inlined::Found(found)
}

/// The functions inlined at an address, without the function they were inlined into; none if the information is malformed.
fn names(context: &Context<EndianSlice<'_, LittleEndian>>, address: u64) -> Vec<String> {
    let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { return Vec::new() };
    let mut names = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        if names.len() > DEPTH_MAX {
            return Vec::new();
        }
        let name = frame.function.and_then(|function| function.raw_name().ok().map(std::borrow::Cow::into_owned));
        names.push(name.unwrap_or_else(|| "[inlined]".to_owned()));
    }
    // The innermost comes first, and the function itself last.
    names.pop();
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::hint::black_box;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::unwinding::image::Image;
    use crate::unwinding::tables::Bytes;

    #[inline(always)]
    fn inlined_into_another(value: u64) -> u64 {
        let mut sum = black_box(value);
        for step in 0..black_box(3) {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(step));
        }
        sum
    }

    #[inline(never)]
    fn calls_an_inlined_function(value: u64) -> u64 {
        inlined_into_another(black_box(value)).wrapping_add(1)
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    #[test]
    fn inlined_functions_are_found_in_debugging_information() {
        black_box(calls_an_inlined_function(black_box(1)));
        let image = Image::new("self".to_owned(), std::process::id(), Bytes::File(File::open("/proc/self/exe").unwrap())).unwrap();
        let maps = crate::unwinding::mappings::Mappings::parse(&crate::host::maps(std::process::id()).unwrap());
        let address = calls_an_inlined_function as *const () as u64;
        let inside = address.wrapping_sub(image.bias(maps.find(address).unwrap()).unwrap());
        let addresses: Vec<u64> = (inside..inside + 64).collect();
        let found = inlined(&image.sections().unwrap(), &addresses, later(), u64::MAX);
        match found {
            Inlined::Found(names) => assert!(names.iter().flatten().any(|name| name.contains("inlined_into_another")), "{names:?}"),
            other => eprintln!("skipped: this test was built without debugging information, or with more than is read: {other:?}"),
        }
        // Nothing is read if no time is left.
        let late = inlined(&image.sections().unwrap(), &addresses, Instant::now(), u64::MAX);
        assert!(matches!(late, Inlined::Late | Inlined::None), "{late:?}");
        let large = inlined(&image.sections().unwrap(), &addresses, later(), 100);
        assert!(matches!(large, Inlined::TooLarge(101..) | Inlined::None), "{large:?}");
    }

    #[test]
    fn a_file_without_debugging_information_has_no_inlined_functions() {
        let Ok(bytes) = fs::read("/bin/sh") else { return eprintln!("skipped: there is no /bin/sh") };
        let image = Image::new("sh".to_owned(), 0, Bytes::Memory(bytes)).unwrap();
        let found = inlined(&image.sections().unwrap(), &[0x1000], later(), u64::MAX);
        assert!(matches!(found, Inlined::None | Inlined::Found(_)), "{found:?}");
    }

    /// A file with the given sections.
    struct FileOfSections(Vec<u8>, Vec<u8>);

    impl NamedSections for FileOfSections {
        fn section_size(&self, name: &str) -> Option<u64> {
            self.section(name, u64::MAX).and_then(|bytes| u64::try_from(bytes.len()).ok())
        }
        fn section(&self, name: &str, _: u64) -> Option<Vec<u8>> {
            match name {
                ".debug_info" => Some(self.0.clone()),
                ".debug_abbrev" => Some(self.1.clone()),
                _ => None,
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_debugging_information_is_read_without_panic(info: Vec<u8>, abbreviations: Vec<u8>, address: u64, version in 2u16..6) {
            // A valid header, so that the bytes behind it are read.
            let mut unit = u32::try_from(info.len() + 7).unwrap().to_le_bytes().to_vec();
            unit.extend(version.to_le_bytes());
            unit.extend(if version == 5 { vec![1, 8, 0, 0, 0, 0] } else { vec![0, 0, 0, 0, 8] });
            unit.extend(&info);
            inlined(&FileOfSections(unit, abbreviations.clone()), &[address, 0], later(), u64::MAX);
            inlined(&FileOfSections(info, abbreviations), &[address], later(), u64::MAX);
        }
    }
}
