//! What a probe says of itself, and the case it is given.

use serde_json::{Value, json};

use crate::bindings::mcpeval::probe::types;
use crate::{Access, Allowance, Check, Fault, Json, Level, Metric, Reason, View};

/// What a probe says of itself. Only what is declared here can appear in a report.
#[derive(Clone, Debug)]
pub struct Manifest {
    inner: types::Manifest,
}

impl Manifest {
    /// A read-only probe of that kind, without case fields, checks, reasons, metrics or needs. Third parties prefix
    /// the kind: `acme.sql-echo`.
    pub fn new(kind: &str, version: &str, title: &str) -> Self {
        let closed = json!({"type": "object", "additionalProperties": false});
        let inner = types::Manifest {
            kind: kind.to_owned(),
            version: version.to_owned(),
            title: title.to_owned(),
            summary: String::new(),
            config_schema: closed.to_string(),
            checks: Vec::new(),
            reasons: Vec::new(),
            metrics: Vec::new(),
            needs: Vec::new(),
            access: Access::ReadOnly,
            asks: Allowance { requests: 1, sessions: 1, millis: 1000 },
        };
        Self { inner }
    }

    /// A few sentences for people.
    #[must_use]
    pub fn summary(mut self, summary: &str) -> Self {
        summary.clone_into(&mut self.inner.summary);
        self
    }

    /// JSON Schema of the case fields. Format `tool` marks tool names: the host checks them before the run.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    pub fn config(mut self, schema: Value) -> Self {
        self.inner.config_schema = schema.to_string();
        self
    }

    /// One more check, at most 64.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.inner.checks.push(check);
        self
    }

    /// One more reason, at most 64, which those checks may give. The hint says in at most 400 characters what is
    /// wrong and what to change.
    #[must_use]
    pub fn reason(mut self, label: &str, hint: &str, checks: &[&str]) -> Self {
        let checks = checks.iter().map(|&check| check.to_owned()).collect();
        self.inner.reasons.push(Reason { label: label.to_owned(), hint: hint.to_owned(), checks });
        self
    }

    /// One more metric.
    #[must_use]
    pub fn metric(mut self, metric: Metric) -> Self {
        self.inner.metrics.push(metric);
        self
    }

    /// Something the server must declare or be, such as `resources.subscribe` or `transport.http`; or, as
    /// `client.sampling`, what the probe's own sessions declare, so that cases may name tools only such clients are shown.
    #[must_use]
    pub fn needs(mut self, need: &str) -> Self {
        self.inner.needs.push(need.to_owned());
        self
    }

    /// Whether cases may call declared writers.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.inner.access = access;
        self
    }

    /// What one run usually spends; shown to people, no limit.
    #[must_use]
    pub fn asks(mut self, requests: u32, sessions: u32, millis: u32) -> Self {
        self.inner.asks = Allowance { requests, sessions, millis };
        self
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn into_contract(self) -> types::Manifest {
        self.inner
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn contract(&self) -> &types::Manifest {
        &self.inner
    }
}

impl Check {
    /// A check of a kind of its own; [`Check::area`] makes it one of a standard.
    pub fn new(id: &str, level: Level, title: &str) -> Self {
        Self { id: id.to_owned(), level, title: title.to_owned(), reference: None, area: None }
    }

    /// Where the rule stands.
    #[must_use]
    pub fn reference(mut self, reference: &str) -> Self {
        self.reference = Some(reference.to_owned());
        self
    }

    /// The area it counts towards.
    #[must_use]
    pub fn area(mut self, area: &str) -> Self {
        self.area = Some(area.to_owned());
        self
    }
}

impl Metric {
    /// A number of that unit.
    pub fn number(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), area: None, labels: Vec::new() }
    }

    /// One of these words.
    pub fn label(name: &str, labels: &[&str]) -> Self {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        Self { name: name.to_owned(), unit: String::new(), area: None, labels }
    }

    /// The area it belongs to.
    #[must_use]
    pub fn area(mut self, area: &str) -> Self {
        self.area = Some(area.to_owned());
        self
    }
}

/// One case of a manifest, or one run of a standard's component.
#[derive(Clone, Debug)]
pub struct Case {
    /// The case's id.
    pub id: String,
    /// The case's own fields; of a standard's run `{"areas": [name], "lanes": n}`.
    pub config: Value,
    /// The same as text: numbers keep all their digits.
    pub fields: Json,
    /// Whether this case may call declared writers.
    pub access: Access,
    /// The wait for an answer where a request names none, in milliseconds.
    pub timeout_ms: u32,
    /// Equal in every run of the same case.
    pub seed: u32,
}

impl Case {
    pub(crate) fn from_contract(case: types::Case) -> Self {
        let types::Case { id, config, access, timeout_ms, seed } = case;
        // The host has validated it against the config schema; what does not parse would be the host's mistake and
        // reads as no fields at all.
        let fields = Json::from_contract(config);
        let config = serde_json::from_str(fields.as_str()).unwrap_or_default();
        Self { id, config, fields, access, timeout_ms, seed }
    }

    /// A field of the case; `None` if it is absent or null.
    pub fn field(&self, name: &str) -> Option<View<'_>> {
        self.fields.view().member(name).filter(|field| !field.is_null())
    }

    /// A field that the config schema requires. The host has seen to it that it is there; else it is a fault.
    pub fn required(&self, name: &str) -> Result<View<'_>, Fault> {
        self.field(name).ok_or_else(|| Fault::incomplete(name))
    }

    /// A required whole number.
    pub fn number(&self, name: &str) -> Result<u32, Fault> {
        let number = self.required(name)?.integer().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| Fault::incomplete(name))
    }

    /// A required boolean.
    pub fn flag(&self, name: &str) -> Result<bool, Fault> {
        self.required(name)?.bool().ok_or_else(|| Fault::incomplete(name))
    }

    /// A required string.
    pub fn string(&self, name: &str) -> Result<String, Fault> {
        Ok(self.required(name)?.string().ok_or_else(|| Fault::incomplete(name))?.into_owned())
    }

    /// The areas a standard wants of this run.
    pub fn areas(&self) -> Vec<&str> {
        self.config["areas"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}
