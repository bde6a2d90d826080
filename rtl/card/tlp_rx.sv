// Parser of the TLPs to the card: stores and loads of the BAR, and completions.
//
// A TLP is a sequence of DWs, first byte of the link in bits 31:24. The header is collected, checked for one
// clock (`check`), and then the data follow, one DW a clock. A TLP that ends too early or too late is
// reported as malformed with its last DW.
module tlp_rx (
    input  logic        clk,
    input  logic        rst,

    input  logic [31:0] rx_data,
    input  logic        rx_valid,
    input  logic        rx_last,
    output logic        rx_ready,

    // Header of the TLP, stable from `check` to its end.
    output logic        check,
    output logic        is_write,
    output logic        is_read,
    output logic        is_completion,
    output logic        has_data,
    output logic        poisoned,
    output logic        short_of_data,   // the TLP ended with its header
    output logic [10:0] length,          // in DW, 1 to 1024
    output logic [31:0] dw0,
    output logic [31:0] dw1,
    output logic [31:0] dw2,
    output logic [31:0] address,         // low half of the address of a request

    // One DW of data, lowest byte in bits 7:0.
    output logic        data_valid,
    output logic [31:0] data,
    output logic [10:0] data_index,
    // Last DW of a TLP with data.
    output logic        data_end,
    output logic        malformed,

    // A store waits while this is set; a load waits until it is taken.
    input  logic        hold_write,
    output logic        read_valid,
    input  logic        read_ready
);
    typedef enum logic [2:0] {DW0, DW1, DW2, DW3, CHECK, DATA, DROP, READ} state_t;
    state_t state;
    logic   ended;      // the header came with `last`
    logic   has_digest;

    wire four_dw = dw0[29];
    wire take    = rx_valid && rx_ready;
    wire [10:0] beats = length + (has_digest ? 11'd1 : 11'd0);

    assign rx_ready      = state != CHECK && state != READ;
    assign check         = state == CHECK;
    assign has_data      = dw0[30];
    assign is_write      = dw0[28:24] == 5'b00000 && has_data;
    assign is_read       = dw0[28:24] == 5'b00000 && !has_data;
    assign is_completion = dw0[28:24] == 5'b01010 && !four_dw;
    assign has_digest    = dw0[15];
    assign poisoned      = dw0[14];
    assign short_of_data = ended && has_data;
    assign length        = dw0[9:0] == 0 ? 11'd1024 : {1'b0, dw0[9:0]};

    assign data_valid = state == DATA && take && data_index < length;
    assign data       = {rx_data[7:0], rx_data[15:8], rx_data[23:16], rx_data[31:24]};
    assign data_end   = (state == DATA || state == DROP) && take && rx_last;
    assign malformed  = state == DROP || data_index + 11'd1 != beats;
    assign read_valid = state == READ;

    always_ff @(posedge clk) begin
        if (rst) begin
            state <= DW0;
        end else begin
            case (state)
                DW0: if (take) begin
                    dw0   <= rx_data;
                    ended <= 1'b0;
                    state <= rx_last ? DW0 : DW1;
                end
                DW1: if (take) begin
                    dw1   <= rx_data;
                    state <= rx_last ? DW0 : DW2;
                end
                DW2: if (take) begin
                    dw2     <= rx_data;
                    address <= rx_data;
                    ended   <= rx_last;
                    state   <= four_dw ? (rx_last ? DW0 : DW3) : CHECK;
                end
                DW3: if (take) begin
                    address <= rx_data;
                    ended   <= rx_last;
                    state   <= CHECK;
                end
                CHECK: begin
                    data_index <= '0;
                    if (is_write && hold_write) state <= CHECK;
                    else if (ended) state <= is_read ? READ : DW0;
                    else if (has_data && (is_write || is_completion)) state <= DATA;
                    else state <= DROP;
                end
                DATA: if (take) begin
                    data_index <= data_index + 11'd1;
                    if (rx_last) state <= DW0;
                    else if (data_index + 11'd1 == beats) state <= DROP;
                end
                DROP: if (take && rx_last) state <= DW0;
                READ: if (read_ready) state <= DW0;
            endcase
        end
    end

    // A load is taken before the next TLP is read.
    a_read_is_whole: assert property (@(posedge clk) disable iff (rst) read_valid |-> !rx_ready);
    a_index_in_length: assert property (@(posedge clk) disable iff (rst) data_valid |-> data_index < length);
endmodule
