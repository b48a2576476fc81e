//! What holds for the figures of every document: shares lie between 0 and 1, a value within its interval, and times that were not measured are absent.

use serde_json::Value;

/// The places in a document whose figures cannot be.
pub(crate) fn wrong_figures(document: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    walk("", document, &mut wrong);
    wrong
}

fn walk(path: &str, value: &Value, wrong: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let number = |name: &str| fields.get(name).and_then(Value::as_f64);
            // A count beside percentiles says how many there are.
            if number("p50") == Some(0.0) && number("max") == Some(0.0) && !fields.contains_key("count") {
                wrong.push(format!("{path}: percentiles of what was not measured"));
            }
            let of = number("value").or(number("mean"));
            if let (Some(value), Some(low), Some(high)) = (of, number("low"), number("high"))
                && !(low <= value && value <= high)
            {
                wrong.push(format!("{path}: {value} is not within {low} to {high}"));
            }
            for (name, field) in fields {
                let at = format!("{path}.{name}");
                let is_share = (name == "share" || name == "utilization" || name.ends_with("_share")) && !path.ends_with(".growth");
                if is_share && field.as_f64().is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                    wrong.push(format!("{at} = {field}"));
                }
                walk(&at, field, wrong);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(&format!("{path}[]"), item, wrong)),
        _ => {}
    }
}
