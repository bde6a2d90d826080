#!/bin/sh
# Copies what `lanemark doctor --from` reads of a machine into one file:
#
#     sudo sh capture.sh machine.tar.gz
#
# It only reads, and does not wake devices in D3cold. Without root, it copies only 64 bytes of each
# configuration space. It needs GNU cp and tar.

out=${1:-machine.tar.gz}
case $out in /*) ;; *) out=$PWD/$out ;; esac
copy=$(mktemp -d) || exit 1
# Folders of /proc are copied with their modes, without write permission for the user.
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT
cd / || exit 1

# tar trusts the reported file sizes, a page for most files of sysfs and 0 in /proc; cp reads to the end.
# Unreadable files are left out, and lanemark reports their facts as unseen.
keep() { cp -P --parents -t "$copy" -- "$@" 2>/dev/null; }

for folder in sys/bus/pci/devices sys/class/iommu sys/kernel/iommu_groups sys/devices/system/cpu/cpu0/cpuidle; do
    if [ -d $folder ]; then mkdir -p "$copy/$folder"; fi
done

for link in sys/bus/pci/devices/*; do
    keep "$link"
    function=$(cd "$link" 2>/dev/null && pwd -P) || continue
    function=${function#/}
    # Reading configuration space or link registers would wake a device in D3cold.
    if [ "$(cat "$function/power_state" 2>/dev/null)" != D3cold ]; then
        keep "$function"/config "$function"/max_link_width "$function"/current_link_*
    fi
    keep "$function"/vendor "$function"/device "$function"/class "$function"/revision \
        "$function"/subsystem_vendor "$function"/subsystem_device "$function"/resource "$function"/numa_node \
        "$function"/local_cpulist "$function"/driver "$function"/iommu_group "$function"/aer_dev_* \
        "$function"/max_link_speed "$function"/power_state "$function"/enable \
        "$function"/d3cold_allowed "$function"/irq "$function"/msi_irqs/* "$function"/sriov_totalvfs "$function"/sriov_numvfs "$function"/resource?_resize
    # Only the existence of these files: reading one could access the device.
    for file in "$function"/resource[0-5] "$function"/resource[0-5]_wc; do
        if [ -e "$file" ]; then : >"$copy/$file"; fi
    done
done

keep sys/devices/system/cpu/online sys/devices/system/cpu/cpu*/cpufreq \
    sys/devices/system/cpu/cpu*/cpufreq/scaling_governor sys/devices/system/cpu/cpu*/cpufreq/scaling_driver \
    sys/devices/system/cpu/cpufreq/*/scaling_governor sys/devices/system/cpu/cpufreq/*/scaling_driver \
    sys/devices/system/cpu/cpu0/cpuidle/*/name sys/devices/system/cpu/cpu0/cpuidle/*/latency \
    sys/devices/system/cpu/cpu0/cpuidle/*/disable sys/devices/system/node/node*/cpulist \
    sys/devices/system/node/node*/meminfo sys/devices/system/node/node*/distance
keep sys/class/iommu/* sys/kernel/iommu_groups/*/type sys/kernel/security/lockdown \
    sys/kernel/debug/x86/pat_memtype_list sys/module/pcie_aspm/parameters/policy \
    proc/cpuinfo proc/mtrr proc/cmdline proc/sys/kernel/osrelease \
    proc/interrupts proc/irq/*/effective_affinity_list

# Only lines of IOMMUs are copied: the log may contain names and serial numbers.
if log=$(dmesg 2>/dev/null); then
    mkdir -p "$copy/dev"
    printf '%s\n' "$log" | grep -E 'DMAR|AMD-Vi|arm-smmu' >"$copy/dev/kmsg"
fi

tar -czf "$out" -C "$copy" .
