//! Packet filter rules: outgoing packets of an interface go to our queue or are assigned a
//! class.

use std::fmt::Write as _;

use airmile_control::qcut::{ClassConfig, Tier};
use airmile_host::Attempt;

use crate::error::{Error, Result};
use crate::instance::{CommandInput, StateFile, SystemChange};
use crate::netlink::traffic::{CLASSES, MAJOR};
use crate::options::Deploy;

/// Packets with this mark are our own and pass (chosen here: unlikely to be used by
/// others).
pub(crate) const MARK: u32 = 0xa11e;

/// After source NAT (100), so that addresses and ports match those in the answers.
const PRIORITY: i32 = 250;

/// Maximum IP length of a packet that counts as a pure acknowledgement: headers with
/// timestamps and three SACK blocks (RFC 7323, RFC 2018). A filter cannot determine the
/// length of the data.
const PURE_ACK_BYTES: u32 = 100;

/// The program that installed the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    Nftables,
    Iptables,
}

impl Filter {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
        }
    }
}

fn table(index: u32) -> String {
    format!("airmile_qcut_{index}")
}

/// A step that recreates our nft table and removes it.
fn nft_step(index: u32, again: Option<CommandInput>) -> SystemChange {
    let words = ["nft", "delete", "table", "inet", &table(index)];
    SystemChange::Command { words: words.map(str::to_owned).to_vec(), again }
}

/// Runs nft with a script, which it applies atomically.
fn nft(script: String) -> CommandInput {
    CommandInput { words: ["nft", "-f", "-"].map(str::to_owned).to_vec(), input: script }
}

/// Sends outgoing packets to the kernel queue with a number. They pass while no process
/// reads the queue.
pub(crate) fn queue(
    state: &mut StateFile,
    interface: &str,
    index: u32,
    number: u16,
) -> Result<Filter> {
    let script = format!(
        "table inet {} {{\n chain out {{\n  type filter hook postrouting priority {PRIORITY}; \
         policy accept;\n  oifname \"{interface}\" meta mark != {MARK} counter queue num {number} \
         bypass\n }}\n}}\n",
        table(index)
    );
    let nft = nft(script);
    state.add(nft_step(index, Some(nft.clone())))?;
    let by_nft = match nft.run() {
        Ok(()) => return Ok(Filter::Nftables),
        Err(error) => error,
    };
    let mut outcome = Ok(());
    for program in ["iptables", "ip6tables"] {
        let words = |verb| iptables_words(program, verb, interface, number);
        let again = CommandInput { words: words("-A"), input: String::new() };
        state.add(SystemChange::Command { words: words("-D"), again: Some(again.clone()) })?;
        let done = again.run();
        // A host without IPv6 has no filter for it.
        if program == "iptables" {
            outcome = done;
        }
    }
    let by_iptables = match outcome {
        Ok(()) => return Ok(Filter::Iptables),
        Err(error) => error,
    };
    let why = format!(
        "neither nft ({by_nft}) nor iptables ({by_iptables}) can redirect packets to a queue"
    );
    Err(Error::deployment(Deploy::Nfqueue, interface, &why))
}

/// The command of a rule that redirects packets to a queue.
fn iptables_words(program: &str, verb: &str, interface: &str, number: u16) -> Vec<String> {
    let text = format!(
        "{program} -w -t mangle {verb} POSTROUTING -o {interface} -m mark ! --mark {MARK} \
         -j NFQUEUE --queue-num {number} --queue-bypass"
    );
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether iptables adds the rule. For a network namespace that ends with the trial.
pub(crate) fn try_iptables(interface: &str) -> bool {
    let words = iptables_words("iptables", "-A", interface, 1);
    CommandInput { words, input: String::new() }.run().is_ok()
}

/// What nft says of a rule that redirects packets to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleTrial {
    Works,
    /// There is no nft.
    NoProgram,
    /// The kernel has no tables of nftables.
    NoTables,
    /// It has tables, and no queue.
    NoQueue,
    /// This process may not ask.
    Unknown,
}

/// Has nft check the rule: the kernel takes it apart as if it were to be added, and adds nothing.
pub(crate) fn try_rule(interface: &str) -> RuleTrial {
    let trial = |rule: &str| {
        let input = format!(
            "table inet airmile_qcut_trial {{\n chain out {{\n  type filter hook postrouting \
             priority {PRIORITY}; policy accept;\n  {rule}\n }}\n}}\n"
        );
        let words = ["nft", "--check", "-f", "-"].map(str::to_owned).to_vec();
        CommandInput { words, input }.run()
    };
    let passes = format!("oifname \"{interface}\" counter");
    let Err(error) = trial(&format!("{passes} queue num 1 bypass")) else {
        return RuleTrial::Works;
    };
    match trial(&passes) {
        _ if error.kind() == std::io::ErrorKind::NotFound => RuleTrial::NoProgram,
        _ if error.to_string().contains("not permitted") => RuleTrial::Unknown,
        Ok(()) => RuleTrial::NoQueue,
        Err(_) => RuleTrial::NoTables,
    }
}

/// Assigns outgoing packets to HTB classes.
pub(crate) fn classify(
    state: &mut StateFile,
    interface: &str,
    index: u32,
    classes: &ClassConfig,
) -> Result<()> {
    let rules = rules(classes);
    if rules.is_empty() {
        return Ok(());
    }
    let mut script = format!(
        "table inet {} {{\n chain out {{\n  type filter hook postrouting priority {PRIORITY}; \
         policy accept;\n  oifname != \"{interface}\" accept\n",
        table(index)
    );
    for rule in rules {
        let _ = writeln!(script, "  {rule}");
    }
    script.push_str(" }\n}\n");
    // Classes hold back no packets.
    state.add(nft_step(index, None))?;
    Ok(nft(script).run().refused(
        || "nft cannot assign classes to packets".to_owned(),
        "Install nftables, or run without classes: --classify none.",
    )?)
}

/// Rules in the order in which the core checks the classes ([`ClassConfig::tier`]).
fn rules(classes: &ClassConfig) -> Vec<String> {
    let to = |what: String, tier: Tier| {
        let minor = CLASSES[tier as usize];
        format!("{what} meta priority set {MAJOR:x}:{minor:x} accept")
    };
    let mut all = Vec::new();
    let mut ports = |ports: &[u16], tier| {
        if !ports.is_empty() {
            let list: Vec<String> = ports.iter().map(u16::to_string).collect();
            for protocol in ["tcp", "udp"] {
                all.push(to(format!("{protocol} dport {{ {} }}", list.join(", ")), tier));
            }
        }
    };
    ports(&classes.urgent_ports, Tier::Urgent);
    ports(&classes.background_ports, Tier::Background);
    if classes.dns {
        ports(&[53, 853], Tier::Urgent);
    }
    if classes.pure_acks {
        let what = format!(
            "tcp flags & (syn | fin | rst | psh | ack) == ack meta length < {PURE_ACK_BYTES}"
        );
        all.push(to(what, Tier::Urgent));
    }
    if classes.dscp {
        for family in ["ip", "ip6"] {
            all.push(to(format!("{family} dscp {{ 40, 44, 46, 48, 56 }}"), Tier::Urgent));
            all.push(to(format!("{family} dscp {{ 1, 8 }}"), Tier::Background));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_go_in_the_order_of_the_core() {
        let classes = ClassConfig {
            urgent_ports: vec![22, 5060],
            dscp: false,
            pure_acks: false,
            ..ClassConfig::default()
        };
        let expected = [
            "tcp dport { 22, 5060 } meta priority set a11e:10 accept",
            "udp dport { 22, 5060 } meta priority set a11e:10 accept",
            "tcp dport { 53, 853 } meta priority set a11e:10 accept",
            "udp dport { 53, 853 } meta priority set a11e:10 accept",
        ];
        assert_eq!(rules(&classes), expected);
        assert!(rules(&ClassConfig::none()).is_empty());
        assert_eq!(rules(&ClassConfig::default()).len(), 7);
    }
}
