//! A variant of a scenario: the scenario's text with the variant's changes in it. What a change names must be there.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::plan::{Change, Load, Variant};

/// Start of a placeholder whose value a variant sets.
const PLACEHOLDER: &str = "{set:";

/// The text of the scenario for a variant.
///
/// # Errors
/// One sentence: a server, host or piece of text that is not there, a placeholder without a value, or a value without a placeholder.
pub fn scenario(text: &str, variant: &Variant) -> Result<String, String> {
    let change = &variant.change;
    let text = filled(text, change)?;
    let mut scenario: Table =
        text.parse().map_err(|error: toml::de::Error| format!("the scenario with the values of \"{}\": {error}", variant.name))?;
    for (server, env) in &change.env {
        let table = table_in(named(&mut scenario, "server", server)?, "env")?;
        for (key, value) in env {
            table.insert(key.clone(), Value::String(value.clone()));
        }
    }
    for (server, command) in &change.command {
        let command = command.iter().map(|word| Value::String(word.clone())).collect();
        named(&mut scenario, "server", server)?.insert("command".to_owned(), Value::Array(command));
    }
    for (server, cpus) in &change.cpus {
        let cpus = cpus.iter().map(|cpu| Value::Integer(i64::from(*cpu))).collect();
        named(&mut scenario, "server", server)?.insert("cpus".to_owned(), Value::Array(cpus));
    }
    for (host, sysctls) in &change.sysctls {
        let table = table_in(named(&mut scenario, "host", host)?, "sysctls")?;
        for (key, value) in sysctls {
            table.insert(key.clone(), Value::String(value.to_string()));
        }
    }
    for replace in &change.config {
        let server = named(&mut scenario, "server", &replace.server)?;
        let Some(Value::String(config)) = server.get_mut("config") else {
            return Err(format!("the server \"{}\" has no configuration text", replace.server));
        };
        match config.matches(&replace.find).count() {
            1 if !replace.find.is_empty() => *config = config.replacen(&replace.find, &replace.with, 1),
            count => {
                return Err(format!(
                    "the configuration of \"{}\" has \"{}\" {count} times: write a text that it has exactly once",
                    replace.server, replace.find
                ));
            }
        }
    }
    load(&mut scenario, &variant.load)?;
    toml::to_string(&scenario).map_err(|error| error.to_string())
}

/// The text with the values of its placeholders.
fn filled(text: &str, change: &Change) -> Result<String, String> {
    let mut out = text.to_owned();
    for (name, value) in &change.set {
        let placeholder = format!("{PLACEHOLDER}{name}}}");
        if !out.contains(&placeholder) {
            return Err(format!("the scenario has no placeholder {placeholder}"));
        }
        out = out.replace(&placeholder, &value.to_string());
    }
    match out.find(PLACEHOLDER) {
        None => Ok(out),
        Some(at) => {
            let end = out[at..].find('}').map_or(out.len(), |end| at + end + 1);
            Err(format!("the placeholder {} of the scenario has no value: set it in every variant", &out[at..end]))
        }
    }
}

/// The element of an array of tables that has this name.
fn named<'t>(scenario: &'t mut Table, kind: &str, name: &str) -> Result<&'t mut Table, String> {
    let all = scenario.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_table_mut);
    let mut names = Vec::new();
    for table in all {
        match table.get("name").and_then(Value::as_str) {
            Some(found) if found == name => return Ok(table),
            found => names.extend(found.map(str::to_owned)),
        }
    }
    Err(format!("the scenario has no {kind} \"{name}\" (it has {})", if names.is_empty() { "none".to_owned() } else { names.join(", ") }))
}

fn table_in<'t>(table: &'t mut Table, key: &str) -> Result<&'t mut Table, String> {
    let entry = table.entry(key.to_owned()).or_insert_with(|| Value::Table(Table::new()));
    entry.as_table_mut().ok_or_else(|| format!("{key} of the scenario is no table"))
}

/// The load in place of the scenario's.
fn load(scenario: &mut Table, load: &Load) -> Result<(), String> {
    let table = table_in(scenario, "load")?;
    if let Some(connections) = load.connections {
        table.insert("connections".to_owned(), Value::Integer(i64::from(connections)));
    }
    if let Some(rate) = load.rate {
        table.insert("rate".to_owned(), Value::Float(rate));
    }
    if let Some(keep_alive) = load.keep_alive {
        table.insert("keep_alive".to_owned(), Value::Boolean(keep_alive));
    }
    if let Some(timeout) = &load.timeout {
        table.insert("timeout".to_owned(), Value::String(timeout.clone()));
    }
    if let Some(path) = &load.path {
        let url = table.get("url").and_then(Value::as_str).unwrap_or_default();
        let url = with_path(url, path);
        table.insert("url".to_owned(), Value::String(url));
    }
    let headers: BTreeMap<&String, &String> = load.headers.iter().collect();
    if !headers.is_empty() {
        let own = table_in(table, "headers")?;
        own.extend(headers.into_iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))));
    }
    Ok(())
}

/// A URL with another path.
fn with_path(url: &str, path: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    format!("{}{}{path}", &url[..end], if path.starts_with('/') { "" } else { "/" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    const SCENARIO: &str = r#"
name = "web"
[[host]]
name = "server"
[[server]]
name = "nginx"
cpus = [{set:core}]
config = """
worker_processes 1;
gzip off;
"""
[load]
url = "http://10.0.0.1/"
"#;

    fn patched(change: &str) -> Result<Table, String> {
        let plan = format!(
            "schema = 1\nname = \"x\"\ntitle = \"x\"\nstack.scenario = \"web\"\nload = {{ path = \"/a?b\", connections = 7, headers = {{ X = \"1\" }} }}\n\
             [[variant]]\nname = \"a\"\nset = {{ core = 1 }}\n[[variant]]\nname = \"b\"\n{change}"
        );
        let plan = Plan::parse(&plan, "plan").map_err(|error| error.to_string())?;
        scenario(SCENARIO, &plan.variants[1]).map(|text| text.parse().unwrap())
    }

    #[test]
    fn every_kind_of_change_reaches_the_scenario() {
        let table = patched(
            "set = { core = 0 }\nenv = { nginx = { LD_PRELOAD = \"/x.so\" } }\nsysctls = { server = { \"net.core.somaxconn\" = 9 } }\n\
             config = [{ server = \"nginx\", find = \"gzip off\", with = \"gzip on\" }]\ncommand = { nginx = [\"a\", \"b\"] }",
        )
        .unwrap();
        let server = &table["server"][0];
        assert_eq!(server["cpus"][0].as_integer(), Some(0));
        assert_eq!(server["env"]["LD_PRELOAD"].as_str(), Some("/x.so"));
        assert!(server["config"].as_str().unwrap().contains("gzip on;"));
        assert_eq!(server["command"][1].as_str(), Some("b"));
        assert_eq!(table["host"][0]["sysctls"]["net.core.somaxconn"].as_str(), Some("9"));
        assert_eq!(table["load"]["url"].as_str(), Some("http://10.0.0.1/a?b"));
        assert_eq!((table["load"]["connections"].as_integer(), table["load"]["headers"]["X"].as_str()), (Some(7), Some("1")));
        let cpus = patched("set = { core = 0 }\ncpus = { nginx = [1, 2] }").unwrap();
        assert_eq!(cpus["server"][0]["cpus"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let wrong = |change: &str| patched(change).unwrap_err();
        assert!(wrong("env = { nginx = { A = \"1\" } }").contains("{set:core} of the scenario has no value"));
        assert!(wrong("set = { core = 0, more = 1 }").contains("no placeholder {set:more}"));
        assert!(wrong("set = { core = 0 }\nenv = { apache = { A = \"1\" } }").contains("no server \"apache\" (it has nginx)"));
        assert!(wrong("set = { core = 0 }\nsysctls = { nowhere = { a = 1 } }").contains("no host \"nowhere\" (it has server)"));
        assert!(wrong("set = { core = 0 }\nconfig = [{ server = \"nginx\", find = \"s\", with = \"\" }]").contains("times"));
        assert!(wrong("set = { core = 0 }\nconfig = [{ server = \"nginx\", find = \"\", with = \"\" }]").contains("exactly once"));
        assert!(wrong("set = { core = \"\\\"\" }").contains("with the values of \"b\""));
    }

    #[test]
    fn only_the_path_of_a_url_changes() {
        assert_eq!(with_path("http://{address:web}:8080/x/y", "/z"), "http://{address:web}:8080/z");
        assert_eq!(with_path("http://h", "z"), "http://h/z");
        assert_eq!(with_path("", "z"), "/z");
    }
}
