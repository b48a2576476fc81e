//! The built-in experiments: a plan and a scenario each (lab/experiments), with values from the command line.

use std::path::Path;

use anyhow::{Context, Result, bail};
use chokepoint_lab::Scenario;

use crate::Usage;
use crate::run::plan;

/// A plan by its name.
struct Preset {
    name: &'static str,
    plan: &'static str,
    /// Makes the levels that depend on the command line or on this host. `None` if there are none.
    levels: Option<Levels>,
}

/// Makes TOML of the values given for a preset.
type Levels = fn(&[String]) -> Result<String>;

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../../../../lab/experiments/", $name, ".toml"))
    };
}

const PRESETS: &[Preset] = &[
    Preset { name: "same", plan: text!("same"), levels: None },
    Preset { name: "allocator", plan: text!("allocator"), levels: Some(allocators) },
    Preset { name: "keepalive", plan: text!("keepalive"), levels: None },
    Preset { name: "workers", plan: text!("workers"), levels: None },
    Preset { name: "workers-waiting", plan: text!("workers-waiting"), levels: None },
    Preset { name: "cores", plan: text!("cores"), levels: Some(cores) },
    Preset { name: "fastcgi", plan: text!("fastcgi"), levels: None },
    Preset { name: "nginx-io", plan: text!("nginx-io"), levels: None },
    Preset { name: "pacing", plan: text!("pacing"), levels: None },
    Preset { name: "sysctl", plan: text!("sysctl"), levels: Some(sysctl) },
];

const SCENARIOS: &[(&str, &str)] = &[
    ("experiment-static", text!("experiment-static")),
    ("experiment-allocator", text!("experiment-allocator")),
    ("experiment-keepalive", text!("experiment-keepalive")),
    ("experiment-php", text!("experiment-php")),
    ("experiment-fastcgi", text!("experiment-fastcgi")),
    ("experiment-nginx-io", text!("experiment-nginx-io")),
];

/// The most cores of the preset `cores`: 1, 2, 4, ...
const CORES_MAX: usize = 64;

/// The plan of a preset with the values given for it.
pub(super) fn plan(name: &str, values: &[String]) -> Result<String> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        bail!(Usage(format!("there is no preset \"{name}\": write one of {}", names.join(", "))));
    };
    let Some(levels) = preset.levels else {
        if let Some(value) = values.first() {
            bail!(Usage(format!("the preset {name} takes no value: leave out {value}")));
        }
        return Ok(preset.plan.to_owned());
    };
    let key = values.first().and_then(|value| value.split_once('=')).map_or("", |(key, _)| key);
    Ok(preset.plan.replace("{levels}", &levels(values)?).replace("{key}", key))
}

/// The text of a preset's scenario.
fn scenario_of_preset(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The text of a scenario that a plan names, and where it came from. `near`: the folder of the plan.
pub(super) fn scenario(name: &str, near: Option<&Path>) -> Result<(String, String)> {
    if let Some(text) = scenario_of_preset(name) {
        return Ok((text.to_owned(), format!("built-in {name}")));
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let found = Scenario::find(name)?;
        return Ok((found.text().to_owned(), found.origin().to_owned()));
    }
    let path = near.map_or_else(|| name.into(), |near| near.join(name));
    let bytes = plan::read_file("scenario", &path)?;
    let text = String::from_utf8(bytes).with_context(|| format!("the scenario {} is not UTF-8 text", path.display()))?;
    Ok((text, path.display().to_string()))
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// Where libraries are, for jemalloc, which the preset knows by name.
const LIBRARY_FOLDERS: [&str; 6] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/lib/x86_64-linux-gnu"];

/// The levels of the preset `allocator`: the given libraries, or jemalloc.
fn allocators(values: &[String]) -> Result<String> {
    let mut all = Vec::new();
    for value in values {
        let (name, library) = value
            .split_once('=')
            .filter(|(name, library)| !name.is_empty() && library.starts_with('/'))
            .ok_or_else(|| Usage(format!("\"{value}\" is no allocator: write NAME=/PATH/LIBRARY.so")))?;
        anyhow::ensure!(Path::new(library).is_file(), "there is no library {library}");
        all.push((name.to_owned(), library.to_owned()));
    }
    if all.is_empty() {
        let found = LIBRARY_FOLDERS.iter().map(|folder| format!("{folder}/libjemalloc.so.2")).find(|path| Path::new(path).is_file());
        let found = found.context("jemalloc is not installed (Debian: apt-get install libjemalloc2); or write NAME=/PATH/LIBRARY.so")?;
        all.push(("jemalloc".to_owned(), found));
    }
    let level = |(name, library): (String, String)| {
        format!("[[factor.level]]\nname = {}\nenv = {{ nginx = {{ LD_PRELOAD = {} }} }}\n", quoted(&name), quoted(&library))
    };
    Ok(all.into_iter().map(level).collect::<Vec<_>>().join("\n"))
}

/// The levels of the preset `sysctl`: NAME=A,B.
fn sysctl(values: &[String]) -> Result<String> {
    let usage = || Usage("write the parameter and its values: --preset sysctl net.ipv4.tcp_tw_reuse=0,1".to_owned());
    let [value] = values else { bail!(usage()) };
    let (key, values) = value.split_once('=').filter(|(key, _)| key.starts_with("net.")).ok_or_else(|| {
        Usage(format!(
            "\"{value}\" is no parameter of a network namespace with its values: write NAME=A,B with a name that begins with net."
        ))
    })?;
    let values: Vec<&str> = values.split(',').map(str::trim).filter(|value| !value.is_empty()).collect();
    if values.len() < 2 {
        bail!(usage());
    }
    let variant = |value: &&str| {
        let (key, value) = (quoted(key), quoted(value));
        format!("[[variant]]\nname = {value}\nsysctls = {{ server = {{ {key} = {value} }} }}\n")
    };
    Ok(values.iter().map(variant).collect::<Vec<_>>().join("\n"))
}

/// The levels of the preset `cores`: 1, 2, 4, ... and all cores of this host.
fn cores(values: &[String]) -> Result<String> {
    if let Some(value) = values.first() {
        bail!(Usage(format!("the preset cores takes no value: leave out {value}")));
    }
    let all = std::thread::available_parallelism()?.get().min(CORES_MAX);
    anyhow::ensure!(all > 1, "this host has one core: there is nothing to compare");
    let mut counts: Vec<usize> = (0..).map(|power| 1 << power).take_while(|count| *count < all).collect();
    counts.push(all);
    let variant = |count: usize| {
        // The last cores, so that the load generator has the first ones to itself as long as there are any.
        let list = (all - count..all).map(|core| core.to_string()).collect::<Vec<_>>().join(", ");
        let name = if count == 1 { "1 core".to_owned() } else { format!("{count} cores") };
        let workers = count * 2;
        format!(
            "[[variant]]\nname = \"{name}\"\nset = {{ workers = {workers}, cpus = \"[{list}]\" }}\nverify = {{ workers = {{ php-fpm = {workers} }} }}\n"
        )
    };
    Ok(counts.into_iter().map(variant).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use chokepoint_experiment::{Plan, patch};

    use super::*;

    #[test]
    fn every_preset_is_a_plan_whose_variants_are_scenarios() {
        for preset in PRESETS {
            let values: Vec<String> = match preset.name {
                "allocator" => vec!["self=/proc/self/exe".to_owned()],
                "sysctl" => vec!["net.ipv4.tcp_tw_reuse=0,1".to_owned()],
                _ => Vec::new(),
            };
            let Ok(text) = plan(preset.name, &values) else {
                assert_eq!(preset.name, "cores", "only the number of cores of this host may forbid a preset");
                continue;
            };
            let plan = Plan::parse(&text, preset.name).unwrap();
            let scenario = scenario_of_preset(plan.stack.scenario.as_deref().unwrap()).unwrap();
            for variant in &plan.variants {
                let text = patch::scenario(scenario, variant).unwrap();
                Scenario::parse(&text, preset.name).unwrap();
            }
        }
    }

    #[test]
    fn wrong_values_are_refused_with_what_to_write() {
        let error = |name: &str, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            plan(name, &values).unwrap_err().to_string()
        };
        assert!(error("allocater", &[]).contains("allocator, keepalive"));
        assert!(error("same", &["x=1"]).contains("takes no value"));
        assert!(error("sysctl", &[]).contains("net.ipv4.tcp_tw_reuse=0,1"));
        assert!(error("sysctl", &["vm.swappiness=1,2"]).contains("network namespace"));
        assert!(error("sysctl", &["net.core.somaxconn=1"]).contains("write the parameter"));
        assert!(error("allocator", &["jemalloc"]).contains("NAME=/PATH"));
        assert!(error("allocator", &["x=/nonexistent.so"]).contains("no library"));
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
