// Rules of both senders of TLPs, card/completer.sv and card/request_builder.sv: a granted DW stays until it is
// taken, and `last` is at the DW that the header announces.
module tlp_stream_rules (
    input logic        clk,
    input logic        rst,
    input logic        flr,
    input logic [31:0] data,
    input logic        valid,
    input logic        last,
    input logic        ready,
    input logic        granted,
    // What the module offers as data, and its request to keep them.
    input logic [31:0] read_data,
    input logic        read_hold,
    // Settings of the host.
    input logic [15:0] id,
    input logic [31:0] msi_data
);
    // DWs of this TLP that have been taken, and DWs that it has.
    logic [10:0] sent, all;
    wire [10:0]  payload = data[9:0] == 0 ? 11'd1024 : {1'b0, data[9:0]};
    wire [10:0]  now_all = sent != 0 ? all : (data[29] ? 11'd4 : 11'd3) + (data[30] ? payload : 11'd0);

    always_ff @(posedge clk) begin
        if (rst) begin
            sent <= '0;
        end else if (valid && ready) begin
            sent <= last ? '0 : sent + 11'd1;
            all  <= now_all;
        end
    end

    logic started = 1'b0;
    // The last clock: a DW has waited, with a grant, or without a reset; the data were to be kept.
    logic        ran, waited_granted, waited, held;
    logic [32:0] then;
    logic [31:0] read_then, msi_then;
    logic [15:0] id_then;
    always_ff @(posedge clk) begin
        started        <= 1'b1;
        ran            <= !rst;
        waited_granted <= !rst && valid && !ready && granted;
        waited         <= !rst && valid && !ready && !flr;
        held           <= !rst && read_hold;
        then           <= {last, data};
        read_then      <= read_data;
        msi_then       <= msi_data;
        id_then        <= id;
    end

    always_comb begin
        assume (started || rst);
        // The arbiter takes a DW only with a grant, grants a begun TLP to its end, and takes no grant back.
        if (valid && (ready || sent != 0 || waited_granted)) assume (granted);
        // The memory and the settings keep what they offer.
        if (held) assume (read_data == read_then);
        if (ran) assume (id == id_then && msi_data == msi_then);
    end

    always_comb if (!rst) begin
        a_granted_dw_stays: assert (!waited_granted || valid && {last, data} == then);
        only_a_reset_withdraws_a_dw: assert (!waited || valid && {last, data} == then);
        last_is_where_the_header_says: assert (!valid || last == (sent + 11'd1 == now_all));
    end
endmodule
