//! Tests of reading scenarios: valid ones are accepted, and every error is reported with line and column.

use super::*;
use chokepoint_model::report::Verdict;

const BASE: &str = r#"schema = 1
name = "base"
title = "A base."
[[host]]
name = "client"
[[host]]
name = "server"
[[link]]
a = { host = "client" }
b = { host = "server" }
[client]
host = "client"
[load]
url = "http://{address:server}/"
"#;

/// The base scenario with text appended.
pub(crate) fn scenario_with(more: &str) -> Scenario {
    Scenario::parse(&format!("{BASE}{more}"), "base.toml").unwrap()
}

fn problems(text: &str) -> Vec<Problem> {
    match Scenario::parse(text, "x.toml") {
        Err(ScenarioError::Invalid { problems }) => problems,
        other => panic!("{text}\nshould be refused: {other:?}"),
    }
}

/// The message of the only problem of the base scenario with text appended.
fn refused(more: &str) -> String {
    let problems = problems(&format!("{BASE}{more}"));
    assert_eq!(problems.len(), 1, "{more}: {problems:?}");
    problems[0].to_string()
}

#[test]
fn every_built_in_scenario_is_valid_and_has_its_files_name() {
    let scenarios = Scenario::builtin().unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, Scenario::builtin_names().collect::<Vec<_>>());
    assert_eq!(Scenario::find("conntrack-full").unwrap().load.connections, Some(200));
}

#[test]
fn the_examples_of_the_documentation_are_valid() {
    let page = include_str!("../../../../docs/scenarios.md");
    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).filter(|text| text.contains("schema = 1")).collect();
    assert!(examples.len() >= 2);
    for example in examples {
        Scenario::parse(example, "docs/scenarios.md").unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}

#[test]
fn every_field_is_documented() {
    let page = include_str!("../../../../docs/scenarios.md");
    let source = include_str!("document.rs");
    let fields = source.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": ")).map(|(name, _)| name);
    for field in fields.filter(|name| !name.contains(['(', ' '])) {
        // The file uses the singular for repeated tables.
        let name = match field {
            "hosts" | "links" | "cgroups" | "files" | "servers" | "prefills" => &field[..field.len() - 1],
            _ => field,
        };
        assert!(
            page.contains(&format!("`{name}`")) || page.contains(&format!("[[{name}]]")) || page.contains(&format!("[{name}]")),
            "{name}"
        );
    }
}

#[test]
fn defaults_are_as_documented() {
    let scenario = scenario_with("");
    let load = &scenario.load;
    assert_eq!((load.duration.0.as_secs(), load.timeout.0.as_secs(), load.keep_alive, load.method.as_str()), (10, 2, true, "GET"));
    assert_eq!((load.connections, load.rate, load.threads, &load.expect.0), (None, None, None, &vec![(200, 299), (300, 399)]));
    assert!(scenario.expect.verdict.is_empty() && !scenario.expect.finding_none());
    let expect = scenario_with("[expect]\nverdict = \"healthy\"\nfinding = \"none\"\nlimited_by = [\"cpu\", \"demand\"]\n").expect;
    assert_eq!((expect.verdict, expect.limited_by.len(), expect.finding), (vec![Verdict::Healthy], 2, vec!["none".to_owned()]));
}

#[test]
fn an_invalid_text_is_reported_with_line_and_column() {
    let one = |text: &str| problems(text)[0].to_string();
    assert!(one("").contains("missing field `schema`"));
    assert!(one("schema = 2\nwhatever = 1\n").contains("x.toml:1:1: schema: this chokepoint reads schema 1"));
    assert!(one("schema = \"1\"\n").contains("x.toml:1:10: "));
    assert!(one("schema = 1\nname = \n").starts_with("x.toml:2:"));
    assert!(one(&BASE.replace("title = \"A base.\"\n", "")).contains("missing field `title`"));
    let slip = one(&BASE.replace("url =", "conections = 5\nurl ="));
    assert!(slip.starts_with("x.toml:14:1: unknown field `conections`") && slip.ends_with("did you mean `connections`?"), "{slip}");
    let kind = refused("duration = 10\n");
    assert!(kind.contains("x.toml:15:12: ") && kind.contains("expected"), "{kind}");
    assert!(refused("duration = \"10\"\n").contains("\"10s\""));
    assert!(refused("timeout = \"1 fortnight\"\n").contains("is not a time"));
    assert!(refused("[expect]\nverdict = \"fine\"\n").contains("`choked`, `healthy`, `client-limited`, `unknown`"));
    assert!(refused("[[server]]\nname='a'\nhost='server'\nkind='apache'\n").contains("`nginx`, `php-fpm`, `command`"));
    for length in 0..BASE.len() {
        if let Some(text) = BASE.get(..length) {
            let _ = Scenario::parse(text, "cut.toml");
        }
    }
}

#[test]
fn contradictory_values_are_reported_with_their_field() {
    let cases = [
        ("[[host]]\nname = 'Web'\n", "x.toml:16:1: host[3].name: \"Web\" is not a valid name"),
        ("[[host]]\nname = 'server'\n", "there is a host \"server\" already"),
        (
            "[[host]]\nname = 'x'\nsysctls = { 'vm.swappiness' = 1 }\n",
            "x.toml:17:13: host[3].sysctls.\"vm.swappiness\": only net. settings",
        ),
        ("[[host]]\nname = 'x'\nsysctls = { 'net/../../etc/passwd' = 1 }\n", "is not the name of a setting"),
        ("[[host]]\nname = 'x'\nnftables = ''\n", "the ruleset is empty"),
        ("[[host]]\nname = 'x'\nroutes = [{ to = 'default', via = '10.9.9.9' }]\n", "host \"x\" has no network that contains 10.9.9.9"),
        ("[host_sysctls]\n'x y' = 2\n", "\"x y\" is not the name of a setting"),
        (
            "[[link]]\na = { host = 'clint' }\nb = { host = 'server' }\n",
            "link[2].a.host: there is no host \"clint\": hosts are client, server; did you mean \"client\"?",
        ),
        ("[[link]]\na = { host = 'client' }\nb = { host = 'client' }\n", "a link joins two different hosts"),
        (
            "[[link]]\na = { host = 'client', interface = 'to-server' }\nb = { host = 'server', interface = 'e' }\n",
            "has an interface \"to-server\" already",
        ),
        (
            "[[link]]\na = { host = 'client', addresses = ['10.1.0.1/24'] }\nb = { host = 'server' }\n",
            "give addresses for both ends or for neither",
        ),
        (
            "[[link]]\na = { host = 'client', addresses = ['127.0.0.1/8'] }\nb = { host = 'server', addresses = [] }\n",
            "127.0.0.1 cannot be the address of a link",
        ),
        (
            "[[link]]\na = { host = 'client', addresses = ['10.78.0.1/24'] }\nb = { host = 'server', addresses = [] }\n",
            "has the address 10.78.0.1 already",
        ),
        ("[[link]]\nmtu = 576\na = { host = 'client' }\nb = { host = 'server' }\n", "IPv6 needs 1280"),
        ("[[link]]\na = { host = 'client', shape = { rate = '1mbit', burst = '8KiB' } }\nb = { host = 'server' }\n", "either `latency`"),
        ("[[file]]\npath = '../x'\ncontent = ''\n", "is not a path below the run directory"),
        ("[[file]]\npath = 'x'\n", "either `content` or `size`"),
        ("[[file]]\npath = 'x'\nsize = '1GiB'\n", "at most 256 MiB"),
        ("[[file]]\npath = 'x'\ncontent = ''\n[[file]]\npath = 'x'\ncontent = ''\n", "there is a file \"x\" already"),
        ("[[file]]\npath = 'server.nft'\ncontent = ''\n", "or a server's own"),
        ("[[file]]\npath = 'x'\ncontent = '{address:servr}'\n", "there is no host \"servr\" with an IPv4 address"),
        ("[[server]]\nname = 'a'\nhost = 'server'\nkind = 'nginx'\n", "needs `config`"),
        ("[[server]]\nname = 'a'\nhost = 'server'\nkind = 'command'\n", "needs `command`"),
        ("[[server]]\nname = 'a'\nhost = 'server'\nkind = 'command'\ncommand = []\n", "the first word must be the program"),
        ("[[server]]\nname = 'a'\nhost = 'server'\nkind = 'command'\ncommand = ['x']\nconfig = 'x'\n", "write it with [[file]]"),
        ("[[server]]\nname = 'a'\nhost = 'server'\nkind = 'command'\ncommand = ['x']\ncpus = []\n", "at least one"),
        ("[[server]]\nname = 'a'\nhost = 'server'\nkind = 'command'\ncommand = ['x']\nready = {}\n", "one of `tcp`"),
        (
            "[[server]]\nname = 'a'\nhost = 'server'\nkind = 'command'\ncommand = ['x']\nready = { tcp = '80' }\n",
            "is not an address with a port",
        ),
        (
            "[[server]]\nname = 'a'\nhost = 'server'\nkind = 'command'\ncommand = ['x']\nready = { http = 'http://web/' }\n",
            "names are not resolved",
        ),
        ("[[prefill]]\nhost = 'client'\nto = '{address:server}:9'\nflows = 70000\n", "1 to 60000"),
        ("connections = 0\n", "1 to 1000000 are allowed"),
        ("rate = 0.0\n", "more than 0"),
        ("rate = nan\n", "more than 0"),
        ("duration = '0s'\n", "more than 0"),
        ("method = 'GE T'\n", "is not an HTTP method"),
        ("headers = { 'X-A' = \"1\\r\\nX-B: 2\" }\n", "its value one line"),
        ("expect = '700'\n", "is not an HTTP status"),
        ("[expect]\nfinding = 'Conntrack Full'\n", "is not an id"),
        ("[expect]\nverdict = 'healthy'\nfinding = 'conntrack-table-full'\n", "the verdict can only be \"choked\""),
        ("[expect]\nfinding = 'a'\nforbidden = ['a']\n", "the finding is both expected and forbidden"),
        ("[expect]\nfinding = ['none', 'b']\nforbidden = ['b']\n", "the finding is both expected and forbidden"),
        ("[expect]\nimprovements = ['a']\nimprovements_forbidden = ['a']\n", "the improvement is both expected and forbidden"),
        ("[expect]\nimprovements = ['A b']\n", "is not an id"),
        ("tls = { resume = false }\n", "only an https URL can have this"),
        ("[expect]\nfinding = ['a', 'B b']\n", "expect.finding[2]: \"B b\" is not an id"),
        ("[expect]\nverdict = 'healthy'\nfinding = ['a', 'b']\n", "the verdict can only be \"choked\""),
        ("[expect]\nfinding = 'none'\nremedy = 'x'\n", "nothing is fixed"),
        ("[expect]\nfinding = 'none'\ncauses = ['x']\n", "nothing is fixed"),
        ("[expect]\ncauses = ['X Y']\n", "is not an id"),
        ("[expect]\ncalls = { server = 'a', what = 'malloc', per_request = [2, 1] }\n", "the minimum and the maximum"),
        ("[expect]\nresult = {}\n", "changes_at_most"),
        ("[expect]\nreference = { scenario = 'x', pairs = 0 }\n", "1 to 20"),
        ("slo_p99 = '0s'\n", "more than 0"),
        ("[expect]\neffect = { failed_share_at_most = 0.1 }\n", "`remedy` must be given"),
        ("[expect]\nremedy = 'x'\neffect = {}\n", "one of goodput_times_at_least"),
        ("[expect]\nremedy = 'x'\neffect = { failed_share_at_most = 10.0 }\n", "0 to 1"),
        ("[expect]\nverdict = 'choked'\nlimited_by = 'cpu'\n", "only the verdict \"healthy\" can have this"),
    ];
    for (more, wanted) in cases {
        let shown = refused(more);
        assert!(shown.contains(wanted), "{more}\n{shown}");
    }
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_file() {
    let text = BASE.replace("name = \"base\"", "name = \"BASE\"").replace("host = \"client\"\n[load]", "host = \"clien\"\n[load]");
    let shown = Scenario::parse(&text, "x.toml").unwrap_err().to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(lines[0].starts_with("x.toml:2:1: name: ") && lines[1].starts_with("x.toml:12:1: client.host: "), "{shown}");
}

#[test]
fn a_scenario_is_found_by_name_or_path() {
    let missing = Scenario::find("conntrack-ful").unwrap_err().to_string();
    assert!(missing.contains("conntrack-full, conntrack-60"), "{missing}");
    assert!(Scenario::find("/nonexistent/x.toml").unwrap_err().to_string().starts_with("/nonexistent/x.toml: "));
    assert!(Scenario::find("/proc/").is_err() && Scenario::find("/dev/zero").is_err());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, BASE).unwrap();
    let scenario = Scenario::find(path.to_str().unwrap()).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.text(), scenario.origin()), ("base", BASE, path.to_str().unwrap()));
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(Scenario::find(path.to_str().unwrap()).unwrap_err().to_string().contains("UTF-8"));
    std::fs::write(&path, "#".repeat(TEXT_BYTES_MAX + 1)).unwrap();
    assert!(matches!(Scenario::find(path.to_str().unwrap()), Err(ScenarioError::TooLarge { .. })));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Scenario::parse(&text, "random");
    }

    #[test]
    fn any_change_of_a_character_is_survived(at in 0..BASE.len(), with in "\\PC") {
        let mut text = BASE.to_owned();
        text.replace_range(at..at + 1, &with);
        let _ = Scenario::parse(&text, "changed");
    }
}

#[test]
fn cgroups_must_be_ordered_and_within_the_kernels_limits() {
    let cgroup = |more: &str| format!("[[cgroup]]\nname = 'a'\n{more}\n");
    let scenario = scenario_with(&format!("{}[[cgroup]]\nname = 'b'\ncores = 2\nwithin = 'a'\n", cgroup("cores = 0.3\nperiod = '50ms'")));
    assert_eq!(scenario.cgroups[1].within.as_deref(), Some("a"));
    for more in [
        "cores = 0",
        "cores = -1",
        "cores = nan",
        "cores = inf",
        "cores = 0.009",
        "cores = 5000",
        "cores = 1\nperiod = '2s'",
        "cores = 1\nperiod = '999us'",
    ] {
        assert!(refused(&cgroup(more)).contains("allowed"), "{more}");
    }
    assert!(refused(&cgroup("cores = 1\nwithin = 'a'")).contains("no cgroup \"a\" before"));
    assert!(refused(&format!("{0}{0}", cgroup("cores = 1"))).contains("already"));
    let server = |name: &str| format!("[[server]]\nname = 's'\nhost = 'server'\nkind = 'command'\ncommand = ['true']\ncgroup = '{name}'\n");
    assert!(refused(&server("a")).contains("no cgroup \"a\""));
    let within = format!("{}[[cgroup]]\nname = 'b'\ncores = 1\nwithin = 'a'\n", cgroup("cores = 1"));
    assert!(refused(&format!("{within}{}", server("a"))).contains("contains another"));
    scenario_with(&format!("{within}{}", server("b")));
}
