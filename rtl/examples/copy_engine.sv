// A DMA engine as they are often written: it works with every completer that behaves, and trusts it.
//
// It has two failures on purpose, and `lanemark fuzz-rtl --illegal` finds both:
//   - the place of the data of a completion is computed from its tag and byte count, without a comparison with
//     what was requested: a completion whose byte count or identity is wrong lands in the data of another read;
//   - an error stops the engine in the state HALT until a reset, and there is no completion timeout.
//
// Registers of 64 bits: 0x80 source, 0x88 destination, 0x90 count, 0x98 command (bit 0 start and running, bit 1 to
// the host, bit 2 failed). Addresses and counts are multiples of 4 B. The memory of the engine begins at 0x40000.
module copy_engine (
    input  logic        clk,
    input  logic        rst,
    input  logic        flr,
    input  logic [31:0] rx_data,
    input  logic        rx_valid,
    input  logic        rx_last,
    input  logic [2:0]  rx_bar,
    output logic        rx_ready,
    output logic [31:0] tx_data,
    output logic        tx_valid,
    output logic        tx_last,
    input  logic        tx_ready,
    input  logic [7:0]  credit_posted_headers,
    input  logic [11:0] credit_posted_data,
    input  logic [7:0]  credit_non_posted_headers,
    input  logic [15:0] requester_id,
    input  logic [12:0] mps,
    input  logic [12:0] mrrs,
    input  logic [10:0] tags,
    input  logic        bus_master,
    input  logic [31:0] timeout_clocks,
    input  logic        msi_enable,
    input  logic [63:0] msi_address,
    input  logic [31:0] msi_data
);
    function automatic logic [31:0] swap(input logic [31:0] dw);
        return {dw[7:0], dw[15:8], dw[23:16], dw[31:24]};
    endfunction

    logic [31:0] ram[1024];
    logic [31:0] source_low, source_high, target_low, target_high, count;
    logic        running, to_host, failed, halted;

    // ---- TLPs to the engine -------------------------------------------------------------------------------
    logic [31:0] head[4];
    logic [10:0] seen;
    logic        load_pending;
    wire  [10:0] header_dws  = head[0][29] ? 11'd4 : 11'd3;
    wire         in_header   = seen < 11'd3 || seen < header_dws;
    wire  [31:0] request_low = head[0][29] ? head[3] : head[2];
    wire  [10:0] at          = seen - header_dws;
    wire         is_store    = head[0][31:24] == 8'h40 || head[0][31:24] == 8'h60;
    wire         is_data     = head[0][31:24] == 8'h4a;
    wire  [7:0]  offset      = {request_low[7:2], 2'b00} + {at[5:0], 2'b00};
    wire  [12:0] byte_count  = head[1][11:0] == 0 ? 13'd4096 : {1'b0, head[1][11:0]};
    wire  [1:0]  from_tag    = head[2][9:8];
    wire         take        = rx_valid && rx_ready;
    assign rx_ready = !load_pending;

    // ---- outstanding reads --------------------------------------------------------------------------------
    logic        busy[4];
    logic [12:0] ends_at[4];     // address in the memory after the last byte of the read
    logic [12:0] missing;        // bytes without a completion
    wire  [12:0] place = ends_at[from_tag] - byte_count + {at, 2'b00};
    logic [1:0]  tag;

    // ---- requests -----------------------------------------------------------------------------------------
    typedef enum logic [2:0] {IDLE, REQUEST, HEADER0, HEADER1, ADDRESS0, ADDRESS1, PAYLOAD, HALT} state_t;
    state_t state;
    logic [63:0] host;
    logic [12:0] own;
    logic [12:0] left;
    logic [12:0] chunk;
    logic [10:0] sent;
    logic [7:0]  used_ph, used_nph;
    logic [11:0] used_pd;
    wire  [12:0] limit    = to_host ? mps : mrrs;
    wire  [12:0] page     = 13'd4096 - {1'b0, host[11:0]};
    wire  [12:0] smaller  = limit < page ? limit : page;
    wire  [12:0] next     = left < smaller ? left : smaller;
    wire  [7:0]  free_ph  = credit_posted_headers - used_ph - 8'd1;
    wire  [11:0] free_pd  = credit_posted_data - used_pd - 12'((next + 13'd15) >> 4);
    wire  [7:0]  free_nph = credit_non_posted_headers - used_nph - 8'd1;
    wire         go       = bus_master && (to_host ? !free_ph[7] && !free_pd[11] : !free_nph[7] && !busy[tag]);
    wire         wide     = host[63:32] != 0;
    wire  [10:0] dws      = chunk[12:2];

    // ---- completions of loads: between requests -------------------------------------------------------------
    logic [2:0]  answer;         // 0: none, 1 to 3: header, 4 and 5: data
    wire         two      = head[0][9:0] == 10'd2;
    wire         second   = answer == 3'd5;
    wire [7:0]   asked    = {request_low[7:2], 2'b00} + (second ? 8'd4 : 8'd0);
    logic [31:0] value;
    always_comb begin
        case (asked)
            8'h80: value = source_low;
            8'h84: value = source_high;
            8'h88: value = target_low;
            8'h8c: value = target_high;
            8'h90: value = count;
            8'h98: value = {29'b0, failed, to_host, running};
            default: value = '0;
        endcase
    end

    wire in_request = state == HEADER0 || state == HEADER1 || state == ADDRESS0 || state == ADDRESS1 || state == PAYLOAD;
    wire answering  = answer != 0;
    always_comb begin
        tx_valid = answering || in_request;
        tx_last  = 1'b0;
        tx_data  = '0;
        if (answering) begin
            case (answer)
                3'd1: tx_data = {8'h4a, head[0][23:16], 2'b00, head[0][13:12], 2'b00, head[0][9:0]};
                3'd2: tx_data = {requester_id, 4'b0000, two ? 12'd8 : 12'd4};
                3'd3: tx_data = {head[1][31:8], 1'b0, request_low[6:2], 2'b00};
                default: tx_data = swap(value);
            endcase
            tx_last = second || answer == 3'd4 && !two;
        end else begin
            case (state)
                HEADER0: tx_data = {1'b0, to_host, wide, 5'b0, 14'b0, dws[9:0]};
                HEADER1: tx_data = {requester_id, 6'b0, tag, dws == 11'd1 ? 4'h0 : 4'hf, 4'hf};
                ADDRESS0: tx_data = host[63:32];
                ADDRESS1: tx_data = host[31:0];
                default: tx_data = swap(ram[own[11:2] + sent[9:0]]);
            endcase
            tx_last = state == ADDRESS1 && !to_host || state == PAYLOAD && sent + 11'd1 == dws;
        end
    end

    always_ff @(posedge clk) begin
        // TLPs to the engine.
        if (take) begin
            seen <= rx_last ? 11'd0 : seen + 11'd1;
            if (in_header) begin
                head[seen[1:0]] <= rx_data;
                if (rx_last && (head[0][31:24] == 8'h00 || head[0][31:24] == 8'h20)) load_pending <= 1'b1;
                if (rx_last && head[0][31:24] == 8'h0a) begin
                    failed <= 1'b1;
                    halted <= 1'b1;
                end
            end else if (is_store && rx_bar == 3'd0) begin
                case (offset)
                    8'h80: source_low  <= swap(rx_data);
                    8'h84: source_high <= swap(rx_data);
                    8'h88: target_low  <= swap(rx_data);
                    8'h8c: target_high <= swap(rx_data);
                    8'h90: count       <= swap(rx_data);
                    8'h98: if (!running) begin
                        running <= rx_data[24];
                        to_host <= rx_data[25];
                        failed  <= 1'b0;
                        left    <= count[12:0];
                        missing <= rx_data[25] ? 13'd0 : count[12:0];
                        host    <= rx_data[25] ? {target_high, target_low} : {source_high, source_low};
                        own     <= rx_data[25] ? source_low[12:0] : target_low[12:0];
                        state   <= REQUEST;
                    end
                    default: ;
                endcase
            end else if (is_data) begin
                ram[place[11:2]] <= swap(rx_data);
                missing <= missing - 13'd4;
                if (rx_last) busy[from_tag] <= byte_count > {at + 11'd1, 2'b00};
            end
        end

        // Completions of loads.
        if (load_pending && !answering && (!in_request || tx_last && tx_ready)) answer <= 3'd1;
        if (answering && tx_ready) begin
            answer <= tx_last ? 3'd0 : answer + 3'd1;
            if (tx_last) load_pending <= 1'b0;
        end

        // Requests.
        if (!answering && !(load_pending && state == REQUEST)) begin
            case (state)
                REQUEST: if (halted) begin
                    state <= HALT;
                end else if (left == 0) begin
                    if (missing == 0) begin
                        running <= 1'b0;
                        state   <= IDLE;
                    end
                end else if (go) begin
                    chunk <= next;
                    sent  <= '0;
                    state <= HEADER0;
                end
                HEADER0: if (tx_ready) begin
                    if (to_host) begin
                        used_ph <= used_ph + 8'd1;
                        used_pd <= used_pd + 12'((chunk + 13'd15) >> 4);
                    end else begin
                        used_nph      <= used_nph + 8'd1;
                        busy[tag]     <= 1'b1;
                        ends_at[tag]  <= own + chunk;
                    end
                    state <= HEADER1;
                end
                HEADER1: if (tx_ready) state <= wide ? ADDRESS0 : ADDRESS1;
                ADDRESS0: if (tx_ready) state <= ADDRESS1;
                ADDRESS1: if (tx_ready) begin
                    if (to_host) state <= PAYLOAD;
                    else begin
                        host  <= host + 64'(chunk);
                        own   <= own + chunk;
                        left  <= left - chunk;
                        tag   <= tag + 2'd1;
                        state <= REQUEST;
                    end
                end
                PAYLOAD: if (tx_ready) begin
                    sent <= sent + 11'd1;
                    if (tx_last) begin
                        host  <= host + 64'(chunk);
                        own   <= own + chunk;
                        left  <= left - chunk;
                        state <= REQUEST;
                    end
                end
                default: ;
            endcase
        end

        if (flr && !in_request) begin
            state   <= IDLE;
            running <= 1'b0;
            halted  <= 1'b0;
            failed  <= 1'b0;
            for (int i = 0; i < 4; i++) busy[i] <= 1'b0;
        end
        if (rst) begin
            halted       <= 1'b0;
            state        <= IDLE;
            running      <= 1'b0;
            failed       <= 1'b0;
            to_host      <= 1'b0;
            seen         <= '0;
            answer       <= '0;
            load_pending <= 1'b0;
            tag          <= '0;
            used_ph      <= '0;
            used_pd      <= '0;
            used_nph     <= '0;
            for (int i = 0; i < 4; i++) busy[i] <= 1'b0;
        end
    end

endmodule
