//! Tests of plans: what they mean, and what is refused.

use proptest::prelude::*;

use super::*;

const HEAD: &str = "schema = 1\nname = \"x\"\ntitle = \"a question\"\nstack.scenario = \"web\"\n";

fn plan(rest: &str) -> Result<Plan, String> {
    Plan::parse(&format!("{HEAD}{rest}"), "plan.toml").map_err(|error| error.to_string())
}

const TWO: &str = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = { n = 2 }\n";

#[test]
fn a_plan_of_two_variants_has_defaults() {
    let plan = plan(TWO).unwrap();
    assert_eq!((plan.variants.len(), &plan.comparisons[..]), (2, &[(0, 1)][..]));
    assert_eq!((plan.trial, plan.warm_up, plan.budget), (TRIAL_DEFAULT, WARM_UP_DEFAULT, BUDGET_DEFAULT));
    assert_eq!((plan.decide, plan.precision), (Metric::Goodput, PRECISION_DEFAULT));
}

#[test]
fn factors_are_combined_and_compared_level_by_level() {
    let factors = "[[factor]]\nname = \"workers\"\nlevel = [{ name = \"1\", set = { w = 1 } }, { name = \"2\", set = { w = 2 } }]\n\
                   [[factor]]\nname = \"clients\"\nlevel = [{ name = \"c1\", load = { connections = 1 } }, { name = \"c8\", load = { connections = 8 } }]\n";
    let full = plan(factors).unwrap();
    let names: Vec<&str> = full.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["1 / c1", "1 / c8", "2 / c1", "2 / c8"]);
    // Only cells with the same load are compared.
    assert_eq!(full.comparisons, [(0, 2), (1, 3)]);
    assert_eq!(full.variants[3].load.connections, Some(8));
    let some = plan(&format!("only = [[\"1\", \"c1\"], [\"2\", \"c1\"]]\n{factors}")).unwrap();
    assert_eq!((some.variants.len(), &some.comparisons[..]), (2, &[(0, 1)][..]));
    assert!(plan(&format!("only = [[\"1\", \"c9\"]]\n{factors}")).unwrap_err().contains("no combination [1, c9]"));
}

#[test]
fn a_preloaded_library_must_be_mapped_in_its_variant_alone() {
    let plan =
        plan("[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nenv = { web = { LD_PRELOAD = \"/usr/lib/libjemalloc.so.2\" } }\n")
            .unwrap();
    assert_eq!(plan.variants[0].change.verify.not_mapped["web"], "libjemalloc.so.2");
    assert_eq!(plan.variants[1].change.verify.mapped["web"], "libjemalloc.so.2");
    assert!(plan.variants[1].change.verify.not_mapped.is_empty());
}

#[test]
fn different_loads_are_refused() {
    let wrong = plan("[[variant]]\nname = \"a\"\nload = { connections = 100 }\n[[variant]]\nname = \"b\"\nload = { connections = 300 }\n");
    assert!(wrong.unwrap_err().contains("\"a\" and \"b\" have different loads"));
}

#[test]
fn variants_that_are_the_same_are_refused_unless_it_is_the_point() {
    let same = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
    assert!(plan(same).unwrap_err().contains("are the same"));
    assert!(plan(&format!("same = true\n{same}")).unwrap().same);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    for (rest, says) in [
        ("[[variant]]\nname = \"a\"\n", "1 variants"),
        ("", "write [[variant]]"),
        ("precision = 1\n[[variant]]\nname = \"a\"\n", "unknown field `precision`"),
        ("measure.precision = 0\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = { a = 1 }\n", "precision = 0"),
        ("measure.decide = \"speed\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = { a = 1 }\n", "is no figure"),
        ("budget = \"soon\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = { a = 1 }\n", "budget = \"soon\""),
        ("load.trial = \"1ms\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = { a = 1 }\n", "trial = \"1ms\""),
        ("[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"\nset = { a = 1 }\n", "there twice"),
        ("[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nsets = { a = 1 }\n", "sets"),
        ("[[variant]]\nset = { a = 1 }\n", "name"),
        ("[[factor]]\nname = \"f\"\nlevel = []\n", "no [[factor.level]]"),
        ("only = [[\"a\"]]\n[[variant]]\nname = \"a\"\n", "no [[factor]]"),
    ] {
        let error = plan(rest).unwrap_err();
        assert!(error.contains(says), "{rest}: {error}");
    }
    let schema = Plan::parse("schema = 2\nname = \"x\"\ntitle = \"\"\nstack.url = \"http://h/\"\n", "p").unwrap_err();
    assert!(schema.to_string().contains("schema = 2"));
}

#[test]
fn many_factors_do_not_explode() {
    let level = |number: usize| format!("{{ name = \"l{number}\", set = {{ a = {number} }} }}");
    let levels = (0..40).map(level).collect::<Vec<_>>().join(", ");
    let factors: String = (0..20).map(|factor| format!("[[factor]]\nname = \"f{factor}\"\nlevel = [{levels}]\n")).collect();
    assert!(plan(&factors).unwrap_err().contains("more than 64 combinations"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,400}") {
        let _ = Plan::parse(&text, "plan");
    }

    #[test]
    fn no_value_makes_it_panic(key in "[a-z_.]{1,12}", value in "[-a-z0-9\"{}\\[\\] .=]{0,20}") {
        let _ = plan(&format!("{key} = {value}\n{TWO}"));
    }
}
