//! Numbers in decimal arithmetic: a tenth has no binary form.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Digits after the point, and before it, that are calculated with.
const MAX_SCALE: u32 = 30;

/// `mantissa` / 10^`scale`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimal {
    mantissa: i128,
    scale: u32,
}

impl Decimal {
    pub(super) const ONE: Self = Self { mantissa: 1, scale: 0 };

    /// `None` past the digits that are calculated with.
    pub(super) fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text.as_str(), 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        if scale < 0 {
            let zeros = u32::try_from(-scale).ok().filter(|zeros| *zeros <= MAX_SCALE)?;
            return Some(Self { mantissa: mantissa.checked_mul(10_i128.checked_pow(zeros)?)?, scale: 0 });
        }
        let scale = u32::try_from(scale).ok().filter(|scale| *scale <= MAX_SCALE)?;
        Some(Self { mantissa, scale }.shortest())
    }

    fn shortest(mut self) -> Self {
        while self.scale > 0 && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }

    /// Both mantissas at one scale.
    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let at = |number: Self| number.mantissa.checked_mul(10_i128.checked_pow(scale - number.scale)?);
        Some((at(self)?, at(other)?, scale))
    }

    fn compare(self, other: Self) -> Ordering {
        match self.aligned(other) {
            Some((left, right, _)) => left.cmp(&right),
            // Too far apart for one scale: the one with fewer decimals is the larger in size.
            None if self.scale < other.scale => self.mantissa.cmp(&0),
            None => 0.cmp(&other.mantissa),
        }
    }

    fn plus(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Some(Self { mantissa: left.checked_add(right)?, scale }.shortest())
    }

    fn middle(self, other: Self) -> Option<Self> {
        let sum = self.plus(other)?;
        Some(Self { mantissa: sum.mantissa.checked_mul(5)?, scale: sum.scale.checked_add(1)? }.shortest())
    }

    /// The smallest positive number that both divide.
    fn common_multiple(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        let (mut a, mut b) = (left.checked_abs()?, right.checked_abs()?);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Self { mantissa: left.checked_div(a)?.checked_mul(right)?.checked_abs()?, scale }.shortest())
    }

    /// The nearest multiple of `step` that is not below, or not above.
    fn to_multiple(self, step: Self, up: bool) -> Option<Self> {
        let (value, step, scale) = self.aligned(step)?;
        let below = value.checked_sub(value.checked_rem_euclid(step)?)?;
        let mantissa = if up && below != value { below.checked_add(step)? } else { below };
        Some(Self { mantissa, scale }.shortest())
    }

    pub(super) fn value(self) -> Option<Value> {
        let short = self.shortest();
        if short.scale == 0 {
            if let Ok(whole) = i64::try_from(short.mantissa) {
                return Some(whole.into());
            }
            if let Ok(whole) = u64::try_from(short.mantissa) {
                return Some(whole.into());
            }
        }
        let float: f64 = format!("{}e-{}", short.mantissa, short.scale).parse().ok()?;
        Number::from_f64(float).map(Value::Number)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other).is_eq()
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.compare(*other))
    }
}

/// What a schema says of a number.
#[derive(Debug, Clone, Default)]
pub(super) struct Range {
    /// Tightest inclusive and exclusive bounds.
    minimum: Option<Decimal>,
    above: Option<Decimal>,
    maximum: Option<Decimal>,
    below: Option<Decimal>,
    multiples: Vec<Decimal>,
    /// Whether a bound was past what is calculated with.
    lost: bool,
}

impl Range {
    /// Takes one keyword; `exclusive` is the boolean of draft-04.
    pub(super) fn restrict(&mut self, keyword: &str, value: &Value, exclusive: bool) {
        let Value::Number(number) = value else { return };
        let Some(bound) = Decimal::of(number) else {
            self.lost = true;
            return;
        };
        let tighter = |place: &mut Option<Decimal>, larger: bool| {
            if place.is_none_or(|old| if larger { bound > old } else { bound < old }) {
                *place = Some(bound);
            }
        };
        match keyword {
            "minimum" if exclusive => tighter(&mut self.above, true),
            "maximum" if exclusive => tighter(&mut self.below, false),
            "minimum" => tighter(&mut self.minimum, true),
            "maximum" => tighter(&mut self.maximum, false),
            "exclusiveMinimum" => tighter(&mut self.above, true),
            "exclusiveMaximum" => tighter(&mut self.below, false),
            "multipleOf" => self.multiples.push(bound),
            _ => {}
        }
    }

    pub(super) fn admits(&self, number: &Number) -> bool {
        // What cannot be calculated is left to validation.
        Decimal::of(number).is_none_or(|number| self.holds(number))
    }

    fn holds(&self, number: Decimal) -> bool {
        self.minimum.is_none_or(|bound| number >= bound)
            && self.above.is_none_or(|bound| number > bound)
            && self.maximum.is_none_or(|bound| number <= bound)
            && self.below.is_none_or(|bound| number < bound)
    }

    /// The number a schema without other hints gets; none if the bounds leave none, or are past calculation.
    pub(super) fn first(&self, integer: bool) -> Option<Decimal> {
        if self.lost {
            return None;
        }
        let minus_one = Decimal { mantissa: -1, scale: 0 };
        let lower = match (self.minimum, self.above) {
            (Some(minimum), above) if above.is_none_or(|above| minimum > above) => Some(minimum),
            (_, Some(above)) => Some(above.plus(Decimal::ONE)?),
            _ => None,
        };
        let mut number = lower.unwrap_or(Decimal::ONE);
        if let Some(maximum) = self.maximum
            && number > maximum
        {
            number = maximum;
        }
        if let Some(below) = self.below
            && number >= below
        {
            number = below.plus(minus_one)?;
        }
        if !self.holds(number) {
            let least = |a: Option<Decimal>, b: Option<Decimal>| match (a, b) {
                (Some(a), Some(b)) => Some(if a < b { a } else { b }),
                (a, b) => a.or(b),
            };
            let most = |a: Option<Decimal>, b: Option<Decimal>| match (a, b) {
                (Some(a), Some(b)) => Some(if a > b { a } else { b }),
                (a, b) => a.or(b),
            };
            number = most(self.minimum, self.above)?.middle(least(self.maximum, self.below)?)?;
        }
        let mut step: Option<Decimal> = integer.then_some(Decimal::ONE);
        for multiple in &self.multiples {
            step = Some(step.map_or(Some(*multiple), |step| step.common_multiple(*multiple))?);
        }
        let Some(step) = step else { return self.holds(number).then_some(number) };
        [true, false].into_iter().filter_map(|up| number.to_multiple(step, up)).find(|number| self.holds(*number))
    }

    /// The next number that keeps the multiples.
    pub(super) fn after(&self, number: &Number, integer: bool) -> Option<Value> {
        let number = Decimal::of(number)?;
        let mut step = Decimal::ONE;
        for multiple in &self.multiples {
            step = if integer || step != Decimal::ONE { step.common_multiple(*multiple)? } else { *multiple };
        }
        number.plus(step)?.value()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(schema: &Value, integer: bool) -> Option<Value> {
        let mut range = Range::default();
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for value in values {
                range.restrict(keyword, value, false);
            }
        }
        range.first(integer).and_then(Decimal::value)
    }

    #[test]
    fn numbers_follow_their_bounds() {
        let table = [
            (json!({}), true, Some(json!(1))),
            (json!({"minimum": 5}), true, Some(json!(5))),
            (json!({"exclusiveMinimum": 5}), true, Some(json!(6))),
            (json!({"minimum": 5, "exclusiveMinimum": 5}), true, Some(json!(6))),
            (json!({"minimum": 7, "exclusiveMinimum": 5}), true, Some(json!(7))),
            (json!({"maximum": -3}), true, Some(json!(-3))),
            (json!({"exclusiveMaximum": 1}), true, Some(json!(0))),
            (json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}), false, Some(json!(0.5))),
            (json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}), true, None),
            (json!({"minimum": 0.5, "maximum": 1.5}), true, Some(json!(1))),
            (json!({"minimum": 3, "maximum": 2}), true, None),
            (json!({"multipleOf": 7}), true, Some(json!(7))),
            (json!({"minimum": 10, "maximum": 13, "multipleOf": 4}), true, Some(json!(12))),
            (json!({"maximum": -1, "multipleOf": 4}), true, Some(json!(-4))),
            (json!({"minimum": 0.15, "multipleOf": 0.1}), false, Some(json!(0.2))),
            (json!({"multipleOf": [4, 6]}), true, Some(json!(12))),
            (json!({"multipleOf": [0.25, 0.1]}), false, Some(json!(1))),
            (json!({"minimum": 1e18}), true, Some(json!(1_000_000_000_000_000_000_i64))),
            (json!({"minimum": 18_446_744_073_709_551_615_u64}), true, Some(json!(u64::MAX))),
            (json!({"multipleOf": 1e-300}), false, None),
            (json!({"minimum": 1e300}), false, None),
            (json!({"minimum": 1e30, "multipleOf": 1e-30}), false, None),
        ];
        for (schema, integer, expected) in table {
            assert_eq!(first(&schema, integer), expected, "{schema}");
        }
    }

    #[test]
    fn comparison_needs_no_common_scale() {
        let decimal = |mantissa, scale| Decimal { mantissa, scale };
        assert!(decimal(i128::MAX, 0) > decimal(i128::MAX, 30));
        assert!(decimal(i128::MIN + 1, 0) < decimal(1, 30));
        assert!(decimal(1, 30) > decimal(i128::MIN + 1, 0));
        assert_eq!(decimal(10, 1), decimal(1, 0));
    }
}
