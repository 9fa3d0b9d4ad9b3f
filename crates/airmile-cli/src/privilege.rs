//! Fewer rights for processes that read what strangers send: a parser that is broken into
//! cannot load a kernel module, read another user's files or write outside of a few places.

use std::path::Path;

use anyhow::{Context, Result};
use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    path_beneath_rules,
};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Keeps these capabilities and no others, and lets files be written below `writable`
/// alone. It holds for this thread and all that it starts, so it comes before them; programs
/// that are started get no more. Without capabilities, as an ordinary user, the rest holds.
///
/// # Errors
/// The kernel refuses.
pub fn keep(kept: CapabilitySet, writable: &[&Path]) -> Result<()> {
    set_no_new_privs(true).context("no_new_privs")?;
    // A second line: kernels before 5.13 and filters of system calls may not let us.
    let _ = restrict_writes(writable);
    let has = capabilities(None).context("capabilities")?;
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for other in (CapabilitySet::all() - kept).iter() {
            match remove_capability_from_bounding_set(other) {
                // A capability that this kernel does not know.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error).context("the bounding set of capabilities"),
            }
        }
    }
    // Kernels before 4.3 have no ambient set.
    let _ = clear_ambient_capability_set();
    let left = CapabilitySets {
        effective: has.effective & kept,
        permitted: has.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, left).context("giving up capabilities")
}

/// By Landlock, as far as the kernel has it.
fn restrict_writes(writable: &[&Path]) -> Result<(), RulesetError> {
    let abi = ABI::V3;
    Ruleset::default()
        .handle_access(AccessFs::from_write(abi))?
        .create()?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(abi)))?
        .restrict_self()?;
    Ok(())
}
