//! Keyword arguments as options, through the engine's own parser.

use std::time::Duration;

use flagstone::{ColumnFamilyOptions, Options};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::raised;
use crate::merge::MergeOperator;

const MERGE_OPERATOR: &str = "merge_operator";
const EXPIRES_AFTER: &str = "expires_after";

/// The options of one family, and how long its values live, if not for ever.
#[derive(Default)]
pub struct FamilyChoice {
    pub options: ColumnFamilyOptions,
    pub lifetime: Option<Duration>,
}

/// How long something lives: a `timedelta`, or a number of seconds, of which `inf` is for ever.
pub fn lifetime(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    if !value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyFloat>() {
        return value.extract();
    }
    let seconds: f64 = value.extract()?;
    if seconds == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("{EXPIRES_AFTER}={seconds}: {error}")))
}

/// A value as the text of an option: `True`, `4096`, `0.5`, `"zstd"`, a list of such, a `dict` for
/// an option that has parts.
fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(value.is_true().to_string());
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_string());
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(value.to_string());
    }
    if let Ok(parts) = value.cast::<PyDict>() {
        let parts = parts.iter().map(|(part, value)| {
            let part: String = part.extract()?;
            Ok(format!("{part}={}", text(name, &value)?))
        });
        return Ok(format!("{{{}}}", parts.collect::<PyResult<Vec<_>>>()?.join(";")));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let members = value.try_iter()?.map(|member| text(name, &member?));
        return Ok(members.collect::<PyResult<Vec<_>>>()?.join(":"));
    }
    let of = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "option '{name}' is a bool, a number, a str, a list or a dict, not '{of}'"
    )))
}

/// Options by name, as texts.
pub fn changes(options: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, String)>> {
    let Some(options) = options else { return Ok(Vec::new()) };
    let pairs = options.iter().map(|(name, value)| {
        let name: String = name.extract()?;
        let text = text(&name, &value)?;
        Ok((name, text))
    });
    pairs.collect()
}

/// The options of a family, from keyword arguments or a `dict`.
pub fn family(given: Option<&Bound<'_, PyDict>>) -> PyResult<FamilyChoice> {
    let mut family = FamilyChoice::default();
    let Some(given) = given else { return Ok(family) };
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        if name == EXPIRES_AFTER {
            family.lifetime = Some(lifetime(&value)?);
        } else if !set_operator(&mut family.options, &name, &value)? {
            let text = text(&name, &value)?;
            let set = family.options.set(&name, &text);
            set.map_err(|error| raised(given.py(), &error, None))?;
        }
    }
    Ok(family)
}

/// Sets options of a database, and of the families that have none of their own.
pub fn set(options: &mut Options, given: &Bound<'_, PyDict>) -> PyResult<()> {
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        if !set_operator(&mut options.cf, &name, &value)? {
            let text = text(&name, &value)?;
            options.set(&name, &text).map_err(|error| raised(given.py(), &error, None))?;
        }
    }
    Ok(())
}

/// Sets a merge operator written in Python; whether it is one.
fn set_operator(
    family: &mut ColumnFamilyOptions,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    if name != MERGE_OPERATOR {
        return Ok(false);
    }
    if let Ok(operator) = value.cast::<MergeOperator>() {
        family.merge_operator = Some(operator.get().operator());
        return Ok(true);
    }
    if value.is_callable() {
        return Err(PyTypeError::new_err(
            "a merge operator needs a name: MergeOperator(name, merge)",
        ));
    }
    Ok(false)
}
