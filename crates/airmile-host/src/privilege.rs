//! Drops privileges of processes that parse data from strangers: an attacker who takes over a
//! parser cannot load a kernel module or write outside of a few places, and reads other users'
//! files only where a capability for that is kept.

use std::path::Path;

use landlock::{
    ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, path_beneath_rules,
};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::{Attempt, SystemError};

/// The privileges that a process keeps.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// Only these capabilities.
    pub capabilities: CapabilitySet,
    /// Files are written only below these paths.
    pub writable: &'a [&'a Path],
    /// It starts programs, which get no more privileges.
    pub starts_programs: bool,
}

/// Drops all other privileges, for this thread and all that it starts afterwards; call it before
/// starting them. For an ordinary user without capabilities, the other restrictions still hold.
///
/// # Errors
/// The kernel refuses.
pub fn keep(kept: Kept<'_>) -> Result<(), SystemError> {
    let what = |of: &str| format!("cannot give up rights: {of}");
    set_no_new_privs(true).attempt(|| what("no_new_privs"))?;
    // A second layer: kernels before 5.13 and filters of system calls may refuse it.
    let _ = restrict_writes(kept.writable);
    let has = capabilities(None).attempt(|| what("capabilities"))?;
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for other in (CapabilitySet::all() - kept.capabilities).iter() {
            match remove_capability_from_bounding_set(other) {
                // This kernel does not have the capability.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error).attempt(|| what("the bounding set")),
            }
        }
    }
    // Kernels before 4.3 have no ambient set.
    let _ = clear_ambient_capability_set();
    let left = CapabilitySets {
        effective: has.effective & kept.capabilities,
        permitted: has.permitted & kept.capabilities,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, left).attempt(|| what("capabilities"))?;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    calls::refuse(kept).attempt(|| what("system calls"))?;
    Ok(())
}

/// By Landlock, as far as the kernel supports it.
fn restrict_writes(writable: &[&Path]) -> Result<(), RulesetError> {
    let abi = ABI::V3;
    Ruleset::default()
        .handle_access(AccessFs::from_write(abi))?
        .create()?
        .add_rules(path_beneath_rules(writable, AccessFs::from_write(abi)))?
        .restrict_self()?;
    Ok(())
}

/// A filter of system calls (seccomp).
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod calls {
    use std::io;

    use rustix::thread::CapabilitySet;
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

    use super::Kept;

    /// System calls that no command uses: the kernel's code and clocks, mounts and namespaces,
    /// other processes, keys, devices, and interfaces with a history of kernel faults. They are the
    /// groups of systemd.exec(5) @clock, @debug, @keyring, @module, @mount, @raw-io, @reboot,
    /// @swap, and parts of @privileged and @io-event.
    const REFUSED: [i64; 48] = [
        libc::SYS_acct,
        libc::SYS_add_key,
        libc::SYS_adjtimex,
        libc::SYS_chroot,
        libc::SYS_clock_adjtime,
        libc::SYS_clock_settime,
        libc::SYS_delete_module,
        libc::SYS_fanotify_init,
        libc::SYS_finit_module,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fsopen,
        libc::SYS_fspick,
        libc::SYS_init_module,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_io_uring_setup,
        libc::SYS_kcmp,
        libc::SYS_kexec_load,
        libc::SYS_keyctl,
        libc::SYS_lookup_dcookie,
        libc::SYS_mknodat,
        libc::SYS_mount,
        libc::SYS_mount_setattr,
        libc::SYS_move_mount,
        libc::SYS_name_to_handle_at,
        libc::SYS_open_by_handle_at,
        libc::SYS_open_tree,
        libc::SYS_personality,
        libc::SYS_pidfd_getfd,
        libc::SYS_pivot_root,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_ptrace,
        libc::SYS_quotactl,
        libc::SYS_reboot,
        libc::SYS_request_key,
        libc::SYS_setdomainname,
        libc::SYS_sethostname,
        libc::SYS_setns,
        libc::SYS_settimeofday,
        libc::SYS_swapoff,
        libc::SYS_swapon,
        libc::SYS_syslog,
        libc::SYS_umount2,
        libc::SYS_unshare,
        libc::SYS_userfaultfd,
        libc::SYS_vhangup,
    ];
    /// Loading programs into the kernel.
    const BPF: [i64; 2] = [libc::SYS_bpf, libc::SYS_perf_event_open];
    /// Starting programs.
    const EXECUTE: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];
    /// Start of x86's third set of numbers (x32) for the same calls.
    const X32: i64 = 0x4000_0000;

    /// Refuses system calls with EPERM, if the kernel supports such filters.
    pub(super) fn refuse(kept: Kept<'_>) -> io::Result<()> {
        let mut refused = REFUSED.to_vec();
        if !kept.capabilities.contains(CapabilitySet::BPF) {
            refused.extend(BPF);
        }
        if !kept.starts_programs {
            refused.extend(EXECUTE);
        }
        let other = refused.iter().map(|call| call | X32).collect::<Vec<_>>();
        if cfg!(target_arch = "x86_64") {
            refused.extend(other);
        }
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
        let rules = refused.into_iter().map(|call| (call, Vec::new())).collect();
        let not_permitted = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, not_permitted, arch);
        let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
        // A second layer, as above.
        let _ = apply_filter(&program);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "tests: what is skipped")]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::thread;

    use super::*;

    /// Runs in a separate thread, whose restrictions end with it.
    fn with(kept: Kept<'_>, run: impl FnOnce() + Send) {
        thread::scope(|scope| {
            let running = scope.spawn(|| {
                keep(kept).unwrap();
                run();
            });
            running.join().unwrap();
        });
    }

    /// Whether this kernel enforces Landlock rules.
    fn has_landlock() -> bool {
        let restrict = || {
            let handled = Ruleset::default().handle_access(AccessFs::MakeSock)?;
            Ok::<_, RulesetError>(handled.create()?.restrict_self()?.ruleset)
        };
        let status = thread::spawn(restrict).join().unwrap();
        status.is_ok_and(|status| status != landlock::RulesetStatus::NotEnforced)
    }

    #[test]
    fn privileges_files_are_written_below_what_is_kept_alone() {
        let (kept, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let writable = [kept.path()];
        let rights = Kept {
            capabilities: CapabilitySet::empty(),
            writable: &writable,
            starts_programs: false,
        };
        // Queried from a thread without restrictions.
        let has_landlock = has_landlock();
        with(rights, || {
            fs::write(kept.path().join("a"), "a").unwrap();
            let wrote = fs::write(other.path().join("a"), "a");
            if wrote.is_ok() && !has_landlock {
                return airmile_testing::skipped("this kernel has no Landlock");
            }
            assert_eq!(wrote.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
        });
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn privileges_calls_that_are_not_kept_are_refused() {
        let can_start = || Command::new("true").status().is_ok_and(|status| status.success());
        let rights = |starts_programs| Kept {
            capabilities: CapabilitySet::empty(),
            writable: &[],
            starts_programs,
        };
        with(rights(true), || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
                assert!(status.contains(line), "{line}: {status}");
            }
            let unshared = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER);
            assert_eq!(unshared, Err(nix::errno::Errno::EPERM));
            assert!(can_start());
        });
        with(rights(false), || assert!(!can_start()));
        assert!(can_start());
    }
}
