/* Included before everything when Verilated code is compiled: where its messages go. */
#ifdef __cplusplus
extern "C"
#endif
void lanemark_dut_printf(const char *format, ...);
