//! Reads reports: what is lost, what is measured, what may differ between two runs.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// One lost check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// `<area>.<name>`.
    pub check: String,
    /// The tool, if it is one's own.
    pub tool: Option<String>,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.check, self.tool.as_deref().unwrap_or("-"), self.reason)
    }
}

/// A report document.
#[derive(Debug, Clone, PartialEq)]
pub struct Report(Value);

impl Report {
    /// Reads the text of one document.
    pub fn read(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON on standard output: {error}"))?;
        if value["schema"] == "mcpeval.probe-report/v2" { Ok(Self(value)) } else { Err("no report".to_owned()) }
    }

    /// The value at a JSON pointer; null if there is none.
    pub fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// A whole number at a JSON pointer.
    pub fn number(&self, pointer: &str) -> Option<u64> {
        self.at(pointer).as_u64()
    }

    /// The areas, of a partial readiness too.
    pub fn areas(&self) -> &[Value] {
        let areas = match self.at("/readiness/areas") {
            Value::Null => self.at("/readiness_partial/areas"),
            areas => areas,
        };
        areas.as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// One area.
    pub fn area(&self, name: &str) -> Option<&Value> {
        self.areas().iter().find(|area| area["name"] == name)
    }

    /// The score of one area.
    pub fn area_score(&self, name: &str) -> Option<u64> {
        self.area(name)?["score"].as_u64()
    }

    /// A measurement of any area.
    pub fn measurement(&self, name: &str) -> Option<u64> {
        self.areas().iter().find_map(|area| area["measurements"][name].as_u64())
    }

    /// All lost checks.
    pub fn losses(&self) -> BTreeSet<Loss> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.areas()
            .iter()
            .flat_map(|area| area["checks"].as_array().map(Vec::as_slice).unwrap_or_default())
            .map(|check| Loss {
                check: text(&check["id"]),
                tool: check["tool"].as_str().map(str::to_owned),
                reason: text(&check["reason"]),
            })
            .collect()
    }

    /// The document as text without what time may change: latency bands and what follows from them.
    pub fn without_latency(&self) -> String {
        let mut value = self.0.clone();
        if let Some(readiness) = value["readiness"].as_object_mut() {
            readiness.remove("score");
            readiness.remove("badge");
            let areas = readiness.get_mut("areas").and_then(Value::as_array_mut);
            for area in areas.into_iter().flatten().filter(|area| area["name"] == "reliability") {
                area["score"] = Value::Null;
                if let Some(checks) = area["checks"].as_array_mut() {
                    checks.retain(|check| check["id"] != "reliability.latency");
                }
            }
        }
        format!("{value:#}\n")
    }
}
