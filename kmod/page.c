// SPDX-License-Identifier: GPL-2.0
/* The memory type of a mapped page, as the processor finds it: page table, PAT and MTRRs. */
#include <linux/sizes.h>
#include <asm/msr.h>
#include <asm/mtrr.h>

#include "lanemark.h"

/* Entry of the page table for an address of the calling process; under its mmap lock. */
static int page_entry(unsigned long address, pte_t *entry)
{
	pgd_t *pgd = pgd_offset(current->mm, address);
	p4d_t *p4d = pgd_none(*pgd) || pgd_bad(*pgd) ? NULL : p4d_offset(pgd, address);
	pud_t *pud = !p4d || p4d_none(*p4d) || p4d_bad(*p4d) ? NULL : pud_offset(p4d, address);
	pmd_t *pmd = !pud || pud_none(*pud) || pud_bad(*pud) ? NULL : pmd_offset(pud, address);

	if (!pmd || pmd_none(*pmd) || pmd_bad(*pmd))
		return -EFAULT;
	*entry = ptep_get(pte_offset_kernel(pmd, address));
	return pte_present(*entry) ? 0 : -EFAULT;
}

static u64 read_msr(u32 number)
{
	u32 lo, hi;

	rdmsr(number, lo, hi);
	return ((u64)hi << 32) | lo;
}

/* Type of a page by the variable MTRRs, of which UC wins (Intel SDM volume 3, "MTRR Precedences"). */
static u32 mtrr_of(phys_addr_t page)
{
	u32 found = LANEMARK_MTRR_MIXED, type, i, count;
	u64 all, base, mask;

	if (!boot_cpu_has(X86_FEATURE_MTRR) || page < SZ_1M)
		return LANEMARK_MTRR_MIXED;
	all = read_msr(MSR_MTRRdefType);
	if (!(all & BIT(11)))
		return MTRR_TYPE_UNCACHABLE;
	count = read_msr(MSR_MTRRcap) & 0xff;
	for (i = 0; i < count; i++) {
		base = read_msr(MTRRphysBase_MSR(i));
		mask = read_msr(MTRRphysMask_MSR(i));
		type = base & 0xff;
		if (!(mask & BIT(11)) || ((page ^ base) & mask & PAGE_MASK))
			continue;
		if (type == MTRR_TYPE_UNCACHABLE)
			return type;
		if (found != LANEMARK_MTRR_MIXED && found != type)
			return LANEMARK_MTRR_MIXED;
		found = type;
	}
	return found == LANEMARK_MTRR_MIXED ? all & 0xff : found;
}

int lanemark_read_page(struct file *file, struct lanemark_page *page)
{
	struct vm_area_struct *vma;
	u32 index;
	pte_t entry;
	int error = -EINVAL;

	if (page->reserved)
		return -EINVAL;
	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, page->address);
	if (vma && vma->vm_file == file)
		error = page_entry(page->address, &entry);
	mmap_read_unlock(current->mm);
	if (error)
		return error;
	index = (pte_flags(entry) & _PAGE_PWT ? 1 : 0) + (pte_flags(entry) & _PAGE_PCD ? 2 : 0) +
		(pte_flags(entry) & _PAGE_PAT ? 4 : 0);
	page->pat_index = index;
	page->pat = (read_msr(MSR_IA32_CR_PAT) >> (8 * index)) & 7;
	page->mtrr = mtrr_of(PFN_PHYS(pte_pfn(entry)));
	return 0;
}
