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
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	if (pgd_none(*pgd) || pgd_bad(*pgd))
		return -EFAULT;
	p4d = p4d_offset(pgd, address);
	if (p4d_none(*p4d) || p4d_bad(*p4d))
		return -EFAULT;
	pud = pud_offset(p4d, address);
	if (pud_none(*pud) || pud_bad(*pud))
		return -EFAULT;
	pmd = pmd_offset(pud, address);
	if (pmd_none(*pmd) || pmd_bad(*pmd))
		return -EFAULT;
	*entry = *pte_offset_kernel(pmd, address);
	return pte_present(*entry) ? 0 : -EFAULT;
}

/* Type of a page by the variable MTRRs, of which UC wins (Intel SDM volume 3, "MTRR Precedences"). */
static u32 mtrr_of(phys_addr_t page)
{
	u32 found = LANEMARK_MTRR_MIXED, type, i, lo, hi, count;
	u64 base, mask;

	if (!boot_cpu_has(X86_FEATURE_MTRR) || page < SZ_1M)
		return LANEMARK_MTRR_MIXED;
	rdmsr(MSR_MTRRdefType, lo, hi);
	if (!(lo & BIT(11)))
		return MTRR_TYPE_UNCACHABLE;
	type = lo & 0xff;
	rdmsr(MSR_MTRRcap, lo, hi);
	count = lo & 0xff;
	for (i = 0; i < count; i++) {
		rdmsr(MTRRphysMask_MSR(i), lo, hi);
		mask = ((u64)hi << 32) | lo;
		if (!(mask & BIT(11)))
			continue;
		rdmsr(MTRRphysBase_MSR(i), lo, hi);
		base = ((u64)hi << 32) | lo;
		mask &= PAGE_MASK;
		if ((page & mask) != (base & mask))
			continue;
		lo = base & 0xff;
		if (lo == MTRR_TYPE_UNCACHABLE)
			return lo;
		if (found != LANEMARK_MTRR_MIXED && found != lo)
			return LANEMARK_MTRR_MIXED;
		found = lo;
	}
	return found == LANEMARK_MTRR_MIXED ? type : found;
}

int lanemark_read_page(struct file *file, struct lanemark_page *page)
{
	struct vm_area_struct *vma;
	u32 lo, hi, index;
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
	rdmsr(MSR_IA32_CR_PAT, lo, hi);
	page->pat_index = index;
	page->pat = ((((u64)hi << 32) | lo) >> (8 * index)) & 7;
	page->mtrr = mtrr_of(PFN_PHYS(pte_pfn(entry)));
	return 0;
}
