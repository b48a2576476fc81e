//! Steps for what somebody else runs: a unit of systemd, a container, a pod. Programs that stand in for theirs come first in the shell's PATH.
//!
//! Live: servers, namespaces and the clock; nothing is measured.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::kernel::quota_file;
use super::recorded::Recorded;
use super::servers::edited;
use super::{Lab, Shell, there_and_back_in, titled};
use crate::harness::{Chokepoint, has_programs, wait_until};

/// Path of a container's cgroup.
const CONTAINER: &str = "/docker/0123456789ab0123456789ab0123456789ab0123456789ab0123456789ab0123";

/// A shell in which this script stands in for a program. It notes its arguments in the file `calls`.
fn shell_with(chokepoint: &Chokepoint, program: &str, script: &str) -> Shell {
    let directory = chokepoint.file("programs");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(program);
    std::fs::write(&path, format!("#!/bin/sh\nset -e\necho \"$*\" >> {}\n{script}\n", chokepoint.path("calls"))).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    Shell { before: Vec::new(), programs: Some(directory) }
}

fn calls(chokepoint: &Chokepoint) -> Vec<String> {
    std::fs::read_to_string(chokepoint.file("calls")).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_steps_for_nginx_in_a_unit_reload_the_unit() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "worker-connections-few") else { return };
    let recorded = Recorded::of("left-out/worker-connections-few");
    let master = recorded.master("nginx.conf");
    let remedy = recorded.started_in(master, "/system.slice/nginx.service").remedy_in(&lab, lab.name, "raise-worker-connections");
    let script =
        format!("case \"$*\" in 'reload nginx.service') kill -HUP \"$(cat {}/nginx.pid)\";; *) exit 1;; esac", lab.run().display());
    let shell = shell_with(&chokepoint, "systemctl", &script);
    // After each reload the workers are others than the first.
    let first = titled(&lab, "nginx: worker process");
    let in_force = || {
        let line = std::fs::read_to_string(lab.run().join("nginx.conf")).unwrap();
        line.lines().find(|line| line.contains("worker_connections")).map(str::to_owned)
    };
    there_and_back_in(&shell, &lab, &remedy, &in_force);
    wait_until("the workers are others", || titled(&lab, "nginx: worker process").iter().all(|pid| !first.contains(pid)));
    assert_eq!(calls(&chokepoint), ["reload nginx.service"; 2]);
}

#[test]
fn the_steps_for_the_queue_of_php_fpm_in_a_unit_restart_the_unit() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "accept-queue-unix") else { return };
    let recorded = Recorded::of("misses/accept-queue/random-20261120-27");
    let master = recorded.master("php-fpm.conf");
    let unit = "/system.slice/php8.2-fpm.service";
    let remedy = recorded.started_in(master, unit).remedy_in(&lab, "random-20261120-27", "raise-accept-backlog");
    let file = lab.run().join("php-fpm.conf");
    let stop = format!("pid=$(pgrep -o -fx 'php-fpm: master process .{}.') && kill -QUIT \"$pid\"", file.display());
    let wait = "while kill -0 \"$pid\" 2> /dev/null; do sleep 0.1; done";
    let start = format!("ip netns exec {} /usr/sbin/php-fpm8.2 -D -y {}", lab.netns(), file.display());
    let script = format!("case \"$*\" in 'restart php8.2-fpm.service') {stop}; {wait}; {start};; *) exit 1;; esac");
    let shell = shell_with(&chokepoint, "systemctl", &script);
    // The recorded backlog.
    edited(&lab, "php-fpm.conf", "listen.backlog = 10", "listen.backlog = 124");
    shell.run("systemctl restart php8.2-fpm.service");
    wait_until("the recorded backlog is in force", || lab.queue("/php.sock").as_deref() == Some("124"));
    there_and_back_in(&shell, &lab, &remedy, &|| lab.queue("/php.sock"));
    assert_eq!(calls(&chokepoint), ["restart php8.2-fpm.service"; 3]);
}

/// The words of steps, and the lines in them; a command is none of them.
fn told(remedy: &Value, which: &str) -> Vec<String> {
    let steps = remedy[which].as_array().unwrap();
    assert!(!steps.is_empty() && steps.iter().all(|step| step["command"].is_null()), "{which}: {remedy:#}");
    let fields = steps.iter().flat_map(|step| [&step["text"], &step["lines"]]);
    fields.filter_map(|field| field.as_str()).map(str::to_owned).collect()
}

/// An edit in the file of the same name on the host, or a signal to the process, would last until the container's next start at most.
#[test]
fn the_steps_for_a_server_in_a_container_are_words_that_name_its_own_restart() {
    let of = |cgroup: &str| {
        let recorded = Recorded::of("left-out/worker-connections-few");
        let master = recorded.master("nginx.conf");
        recorded.started_in(master, cgroup).remedy("raise-worker-connections")
    };
    let podman = format!("/machine.slice/libpod-{}.scope", &CONTAINER["/docker/".len()..]);
    let pod = format!("/kubepods/burstable/pod7/{}", &CONTAINER["/docker/".len()..]);
    for (cgroup, restart, stops) in [
        (CONTAINER, "docker restart 0123456789ab", "the container must be restarted"),
        (&podman, "podman restart 0123456789ab", "the container must be restarted"),
        (&pod, "kubectl rollout restart", "the container must be restarted"),
    ] {
        let remedy = of(cgroup);
        assert!(remedy["risk"].as_str().unwrap().contains(stops), "{remedy:#}");
        for (which, line) in [("runtime", "worker_connections 256;"), ("undo", "worker_connections 60;")] {
            let told = told(&remedy, which);
            assert!(told.iter().any(|text| text.contains(restart)), "{cgroup}: {told:?}");
            assert!(told.iter().any(|text| text.starts_with(line)), "{cgroup}: {told:?}");
        }
    }
    let mut elsewhere = Recorded::of("left-out/worker-connections-few");
    let master = elsewhere.master("nginx.conf");
    elsewhere.observation.servers.get_mut(&master).unwrap().files.are_elsewhere = Some(true);
    let told = told(&elsewhere.remedy("raise-worker-connections"), "runtime");
    assert!(told.iter().any(|text| text.contains(&format!("process {master}"))), "{told:?}");
}

/// Remedies with each kind of line: the edit, the test, the signal, and the end and start of a server.
const OF_SERVERS: [(&str, &str, &str); 3] = [
    ("left-out/worker-connections-few", "nginx.conf", "raise-worker-connections"),
    ("left-out/pool-exhausted", "php-fpm.conf", "raise-max-children"),
    ("misses/accept-queue/random-20261120-27", "php-fpm.conf", "raise-accept-backlog"),
];

/// The commands among steps; none for kernel settings, which name no file of the server's.
fn commands_for_server<'a>(remedy: &'a Value, which: &str) -> Vec<&'a str> {
    let commands = remedy[which].as_array().unwrap().iter().filter_map(|step| step["command"].as_str());
    commands.filter(|command| !command.contains("sysctl")).collect()
}

/// Whoever may change a program or a file of root's server would run commands as root if its steps were pasted.
#[test]
fn a_server_whose_program_or_files_others_may_write_gets_words_only() {
    for (name, file, id) in OF_SERVERS {
        let mut recorded = Recorded::of(name);
        let master = recorded.master(file);
        let safe = recorded.remedy(id);
        let why = "/home/app/nginx can be changed by user 4001";
        recorded.observation.servers.get_mut(&master).unwrap().files.others_write = Some(why.to_owned());
        let remedy = recorded.remedy(id);
        for which in ["runtime", "undo"] {
            let commands = commands_for_server(&safe, which).join("\n");
            for line in ["patch ", " -t ", "kill -"] {
                assert!(commands.contains(line), "{name}: the steps of a safe server have \"{line}\": {commands}");
            }
            let left = commands_for_server(&remedy, which);
            assert!(left.is_empty(), "{name}: {left:?}");
            let texts: Vec<&str> = remedy[which].as_array().unwrap().iter().filter_map(|step| step["text"].as_str()).collect();
            let at = |part: &str| texts.iter().position(|text| text.contains(part));
            assert!(at(why).is_some() && at(why) < at("Test "), "{name}: {texts:?}");
        }
    }
}

/// The user of a server may have chosen program, file and what they do.
#[test]
fn every_command_for_another_users_server_is_run_as_that_user() {
    for (name, file, id) in OF_SERVERS {
        let mut recorded = Recorded::of(name);
        let master = recorded.master(file);
        let process = recorded.observation.processes.get_mut(&master).unwrap();
        let identity = process.identity.last().unwrap().clone();
        process.identity = super::recorded::only(chokepoint_model::observation::Identity { uid: 4001, ..identity });
        recorded.observation.request.by_uid = Some(0);
        let remedy = recorded.remedy(id);
        for which in ["runtime", "undo"] {
            let commands = commands_for_server(&remedy, which);
            for (part, wanted) in
                [("patch ", "sudo -u '#4001' patch "), (" -t ", "sudo -u '#4001' /usr/sbin/"), ("kill -", "sudo -u '#4001' kill -")]
            {
                let with: Vec<&&str> = commands.iter().filter(|command| command.contains(part)).collect();
                assert!(with.iter().all(|command| command.contains(wanted)), "{name}: {with:?}");
                // A line that ends and starts a server would have to be another user's as a whole: words.
                let is_words = part != "patch " && id == "raise-accept-backlog";
                assert_eq!(with.is_empty(), is_words, "{name}: \"{part}\": {commands:?}");
            }
        }
    }
}

/// What a supervisor started is not its unit's to reload.
#[test]
fn the_steps_for_a_server_that_a_supervisor_started_signal_it() {
    let recorded = Recorded::of("left-out/worker-connections-few");
    let master = recorded.master("nginx.conf");
    let mut recorded = recorded.started_in(master, "/system.slice/supervisor.service");
    let identity = recorded.observation.processes[&master].identity.last().unwrap().clone();
    let process = recorded.observation.processes.get_mut(&master).unwrap();
    process.identity = super::recorded::only(chokepoint_model::observation::Identity { parent: 77, ..identity });
    let remedy = recorded.remedy("raise-worker-connections");
    let commands = super::commands(&remedy, "runtime");
    assert_eq!(commands.last().unwrap(), &format!("kill -HUP {master}"), "{remedy:#}");
}

#[test]
fn the_steps_that_keep_a_quota_give_it_to_the_unit_or_the_container() {
    let chokepoint = Chokepoint::new();
    if !has_programs(&["awk"]) {
        return;
    }
    let Some(_lab) = Lab::up(&chokepoint, "quota-throttled") else { return };
    let (file, line) = quota_file();
    if !file.exists() {
        println!("skipped: the lab's cgroup is not below /sys/fs/cgroup");
        return;
    }
    let quota = || std::fs::read_to_string(&file).unwrap().trim().to_owned();
    // The file keeps what is not written: the period.
    let set = format!("awk -v n=\"$n\" -v of=\"$of\" 'BEGIN {{ printf \"%.0f\", n * 100000 / of }}' > {}", file.display());
    // systemctl(1), set-property; systemd.resource-control(5), CPUQuota=: percent of a core.
    let unit = format!(
        "case \"$*\" in 'set-property php8.2-fpm.service CPUQuota='*%) n=${{3#*=}}; n=${{n%\\%}}; of=100;; *) exit 1;; esac\n{set}"
    );
    // docker-container-update(1): cores.
    let container = format!("case \"$*\" in 'update --cpus '*' 0123456789ab') n=$3; of=1;; *) exit 1;; esac\n{set}");
    for (path, program, script) in [("/system.slice/php8.2-fpm.service", "systemctl", unit), (CONTAINER, "docker", container)] {
        let shell = shell_with(&chokepoint, program, &script);
        let remedy =
            Recorded::of("data/cpu-quota/quota-throttled").with_cgroup_at("/cp-quota-throttled-php", path).remedy("keep-cpu-quota");
        assert_eq!(quota(), line(20_000));
        for (which, wanted) in [("persistent", 100_000), ("undo", 20_000)] {
            let commands: Vec<&str> = remedy[which].as_array().unwrap().iter().filter_map(|step| step["command"].as_str()).collect();
            assert_eq!(commands.len(), 1, "{remedy:#}");
            shell.run(commands[0]);
            assert_eq!(quota(), line(wanted), "{remedy:#}");
        }
    }
}
